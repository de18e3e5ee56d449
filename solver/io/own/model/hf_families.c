/*
 * The table of families of Hugging Face models: what their configs leave unsaid. A family without a
 * row is read by the names of its members alone, and the report says so.
 *
 * Rules and the names in them: hf_rules.h; syntax: hf_formula.h. Figures are named after
 * enum hv__hf_figure ("kv_heads"); the other rules are listed above the table.
 *
 * Facts about the families: their published configurations and parameter counts (transformers 4 and
 * 5, Apache-2.0).
 */
#include "solver/base/attr.h"
#include "solver/io/own/model/hf_rules.h"

#define LINEAR "state-space and linear-attention layers counted as attention over a chunk"
#define BYTES                                                                                      \
    "the local encoder, decoder and patcher are counted at embedding and head: their weights, "    \
    "not their work"
#define SPARSE "sparse attention counted as full attention"

/* clang-format off */
/*
 * gated            the feed-forward has a gate matrix
 * norm, position   'rmsnorm' or 'layernorm'; 'learned', 'rope', 'alibi' or 'none'
 * causal           0: every token sees every other one
 * attention_bias, ffn_bias, tied   whatever the config says, where its flag has another meaning
 * usually_tied     embedding and head are tied where the config does not say
 * grouped          the config usually gives the number of key/value heads
 * windowed         the layer has the window; window_from_layer: max_window_layers counts
 * mixer, half      the two halves of a layer: 'attention', 'linear', 'both' or 'none'; 'dense', 'mixture' or 'none'
 * dense_too        a mixture has a dense feed-forward beside the experts
 * bare             no layer has attention
 * shared           the layer repeats the weights of an earlier one
 * halves           encoder and decoder
 * no_positions     halves without a table of positions
 * own_tables       encoder and decoder have an embedding each
 * cross            a decoder with a config of its own has cross-attention
 * towers           weights of other towers are counted, at the embedding
 * no_tower         a member that looks like a tower and is counted by a rule; '*': all of them
 *
 * "+place name = formula" counts weights beside the usual ones: q, k, v, o and one norm; up, gate,
 * down and one norm; router; embedding; head and final norm.
 */
#define ZAMBA                                                                                      \
    "hybrid = layers_block_type[i] = 'hybrid'; gated = 1; norm = 'rmsnorm'; position = 'none';"    \
    "usually_tied = 1; head_dim = attention_head_dim; mixer = if(hybrid, 'both', 'linear'); half = if(hybrid, 'dense', 'none');"  \
    "repeated = nth(layers_block_type, 'hybrid', num_mem_blocks ?? 1); shared = hybrid & i >= repeated;" \
    "+attention query, key and value of the doubled input = 3 * h * heads * dim;"                  \
    "+layer output projection of the shared block = if(hybrid, h * h, 0);"

static const struct hv__hf_family families[] = {
    /* ---- elements: token mixing without softmax attention, by the members that describe it ---- */
    {"element-mamba", NULL,
     "width = (mamba_expand ?? expand ?? 2) * h;"
     "state = state_size ?? mamba_d_state ?? ssm_state_size;"
     "rank = (time_step_rank ?? mamba_dt_rank) ?? ceil(h / 16);"
     "+linear input and output projection = 3 * h * width;"
     "+linear step, B and C projection = width * (2 * rank + 2 * state);"
     "+linear convolution = width * ((conv_kernel ?? mamba_d_conv ?? 4) + 1);"
     "+linear A, D and step bias = width * (state + 2)", NULL},
    {"element-mamba2", NULL,
     "mheads = mamba_num_heads ?? mamba_n_heads ?? n_mamba_heads ?? num_heads;"
     "width = mheads * (mamba_head_dim ?? mamba_d_head ?? mamba_headdim ?? head_dim);"
     "state = ssm_state_size ?? mamba_d_state ?? state_size;"
     "groups = mamba_n_groups ?? mamba_ngroups ?? n_groups ?? 1;"
     "+linear input projection = h * (2 * width + 2 * groups * state + mheads);"
     "+linear output projection = h * width;"
     "+linear convolution = (width + 2 * groups * state) * ((conv_kernel ?? mamba_d_conv ?? 4) + 1);"
     "+linear gated norm, A, D and step bias = width + 3 * mheads", NULL},
    {"element-delta", NULL,
     "keys = linear_num_key_heads * linear_key_head_dim;"
     "values = linear_num_value_heads * linear_value_head_dim;"
     "+linear query, key, value, gate and output = h * (2 * keys + 3 * values);"
     "+linear beta and decay = 2 * h * linear_num_value_heads + 2 * linear_num_value_heads + linear_value_head_dim;"
     "+linear convolution = (2 * keys + values) * (linear_conv_kernel_dim ?? 4)", NULL},
    {"element-conv", NULL,
     "+linear input and output projection = 4 * h * h;"
     "+linear convolution = h * conv_L_cache", NULL},

    /* ---- decoders like Llama: gated feed-forward, RMS norms, rotary positions ---- */
    {"llama mistral mistral3 ministral ministral3 mixtral deepseek yi baichuan internlm2 internlm3 cwm helium granite "
     "olmo3 seed_oss solar_open qwen3 qwen3_moe hunyuan_v1_dense hunyuan_v1_moe iquestcoder hyperclovax "
     "deepseek_v2 deepseek_v3 youtu minimax_m2 flex_olmo exaone4 exaone_moe dots1 minicpm minicpm3 mellum kolibri1 flint "
     "glm4_moe_lite axk1 axk2 hy_v3 granite_swa granitemoe granitemoeshared granitemoe_swa mimo mimo_v2_flash "
     "laguna bailing_moe dots3_note_text aria_text olmoe bitnet olmo olmo2 diffllama emu3 emu3_text_model "
     "minimax_m3_vl_text zaya arctic ministral4 voxtral_realtime_text", NULL,
     "gated = 1; norm = 'rmsnorm'; position = 'rope'; grouped = 1", NULL},
    {"gemma gemma3_text vaultgemma", "llama", "usually_tied = 1", NULL},
    {"gemma2", "gemma", "windowed = if(has(layer_types), layer_types[i] = 'sliding_attention', i % 2 = 0)", NULL},
    {"gemma3n_text gemma3n", "gemma",
     "ffn = intermediate_size[i] ?? intermediate_size;"
     "+layer per-layer embedding gate and projection = 2 * h * hidden_size_per_layer_input;"
     "+layer LAUREL low-rank residual = 2 * h * laurel_rank;"
     "+layer AltUp router = altup_num_inputs * h;"
     "+attention keys and values of another layer = if(i >= L - num_kv_shared_layers, 0 - 2 * h * kv * dim, 0);"
     "+embedding per-layer embedding = L * hidden_size_per_layer_input * (vocab_size_per_layer_input + h);"
     "+embedding AltUp projections = 2 * (altup_num_inputs - 1) * h * h", NULL},
    {"gemma4_text gemma4 gemma4_unified gemma4_unified_text gemma4_assistant", "gemma",
     "full = layer_types[i] = 'full_attention';"
     "last = i >= L - (num_kv_shared_layers ?? 0);"
     "per = hidden_size_per_layer_input ?? 0;"
     "head_dim = get(row(per_layer_config, i), 'head_dim') ?? if(full, global_head_dim ?? head_dim, head_dim);"
     "kv_heads = get(row(per_layer_config, i), 'num_key_value_heads') ??"
     "           if(full & (attention_k_eq_v ?? 0), num_global_key_value_heads ?? num_key_value_heads, num_key_value_heads);"
     "ffn = get(row(per_layer_config, i), 'intermediate_size') ?? if(last & (use_double_wide_mlp ?? 0), 2, 1) * intermediate_size;"
     "experts = if(enable_moe_block ?? 0, num_experts ?? 0, 0); dense_too = 1;"
     "+attention values that are the keys = if(full & (attention_k_eq_v ?? 0) & !last, 0 - h * kv * dim, 0);"
     "+attention keys and values of another layer = if(last & (num_kv_shared_layers ?? 0) > 0, 0 - 2 * h * kv * dim, 0);"
     "+layer norms after the halves = 2 * h;"
     "+layer per-layer embedding gate and projection = 2 * h * per;"
     "+embedding per-layer embedding = if(per > 0, L * per * ((vocab_size_per_layer_input ?? V) + h), 0)", NULL},
    {"phi3", "llama", "", NULL},
    {"phi4_multimodal", "llama",
     "towers = 1; +embedding projectors = 2 * h * (audio_config.hidden_size + h) + h * (vision_config.hidden_size + h);"
     "+embedding head of the vision tower = vision_config.hidden_size * (4 * vision_config.hidden_size + 2 * vision_config.intermediate_size)", NULL},
    {"glm4_moe", "llama", "head_dim = head_dim ?? floor(hidden_size / num_attention_heads)", NULL},
    {"afmoe beam inkling_text inkling2_text", "llama", "+attention output gate = h * heads * dim", NULL},
    {"apertus arcee nanochat jais2", "llama", "gated = 0", NULL},
    {"nemotron", "llama", "gated = 0; norm = 'layernorm'", NULL},
    {"smollm3 ernie4_5 ernie4_5_text ernie4_5_moe open-llama", "llama", "usually_tied = 1", NULL},
    {"dbrx", "llama",
     "norm = 'layernorm'; kv_heads = attn_config.kv_n_heads; ffn = ffn_config.ffn_hidden_size; moe_ffn = ffn_config.ffn_hidden_size;"
     "experts = ffn_config.moe_num_experts; top_k = ffn_config.moe_top_k", NULL},
    {"blt", "llama",
     "no_tower = '*'; hidden = global_config.hidden_size; layers = global_config.num_hidden_layers; heads = global_config.num_attention_heads;"
     "kv_heads = global_config.num_key_value_heads ?? global_config.num_attention_heads; ffn = global_config.intermediate_size;"
     "max_sequence = global_config.max_position_embeddings; e = encoder_config.hidden_size; d = decoder_config.hidden_size; p = patcher_config.hidden_size;"
     "+embedding hashes of bytes = encoder_hash_byte_group_nb_functions * len(encoder_hash_byte_group_size) * encoder_hash_byte_group_vocab * e;"
     "+embedding local encoder = encoder_config.num_hidden_layers * e * (4 * e + 3 * encoder_config.intermediate_size) + 4 * e * e + e * h;"
     "+embedding patcher = if(patch_in_forward ?? 1, patcher_config.num_hidden_layers * p * (4 * p + 3 * patcher_config.intermediate_size), 0);"
     "+head local decoder = decoder_config.num_hidden_layers * d * (8 * d + 3 * decoder_config.intermediate_size) + h * h", BYTES},
    {"phimoe", "llama", "norm = 'layernorm'; +head bias = if(lm_head_bias ?? 0, V, 0)", NULL},
    {"doge", "llama", "experts = if(is_moe ?? 0, num_experts, 0); +attention step = kv * kv * dim", NULL},
    {"jetmoe", "llama", "usually_tied = 1; +attention experts of query and output = num_local_experts * (2 * h * kv * dim + h) - 2 * h * heads * dim", NULL},
    {"moshi", "llama", "ffn = ffn_dim / 2", NULL},
    {"modernbert-decoder modernbert", "llama", "usually_tied = 1; +head transform = h * h + h + V", NULL},
    {"cpmant", "llama",
     "ffn = dim_ff; head_dim = dim_head; position = 'none'; tied = at(transformers_version ?? '4', 0) != '5';"
     "+embedding prompts and segments = (prompt_types * prompt_length + segment_types) * h", NULL},
    {"hrm_text", "llama", "shared = i >= 2 * num_layers_per_stack; +attention output gate = h * heads * dim",
     "the passes through two stacks of layers counted as layers that share their weights"},
    {"hy_v4", "llama",
     "+attention output gate = h * heads * v_head_dim;"
     "+attention indexer = if((indexer_types[i] ?? 'full') = 'full', index_n_heads * index_head_dim * q_lora_rank + h * (index_head_dim + index_n_heads), 0);"
     "+layer hyper-connections = 4 * hc_mult * hc_mult * h; +head hyper-connection = hc_mult * hc_mult * h", SPARSE},
    {"longcat_flash", "llama",
     "layers = 2 * (num_layers ?? num_hidden_layers); half = if(i % 2 = 0, 'mixture', 'dense'); dense_too = 1;"
     "+mixture router of the experts that compute nothing = (zero_expert_num ?? 0) * h",
     "a layer counted as two: attention, feed-forward and the experts; attention and feed-forward; experts that compute nothing hold no weights, "
     "though the code of transformers gives them gate and up matrices"},
    {"qwen2 qwen2_moe qwen2_vl_text qwen2_5_vl_text", "llama", "attention_bias = attention_bias ?? 1; window_from_layer = 1", NULL},
    {"qwen", "llama", "ffn = intermediate_size / 2; attention_bias = 1", NULL},
    {"chatglm", "llama", "attention_bias = 1", NULL},
    {"glm glm4", "llama", "attention_bias = attention_bias ?? 1", NULL},
    {"cohere cohere2 cohere2_moe", "llama", "usually_tied = 1; norm = 'layernorm'", NULL},
    {"stablelm", "llama", "norm = 'layernorm'", NULL},
    {"gpt_oss", "llama", "attention_bias = 1; ffn_bias = 1; dense_too = 0", NULL},
    {"glm_moe_dsa deepseek_v32", "llama",
     "+attention indexer = index_n_heads * index_head_dim * q_lora_rank + h * index_head_dim + h * index_n_heads", SPARSE},
    {"deepseek_v4", "llama", "", "compressed attention counted as attention over the tokens that it reads"},
    {"mllama", "llama", "", "cross-attention counted as self-attention"},
    {"llama4_text llama4", "llama", "shared_experts = 1; ffn = intermediate_size_mlp ?? intermediate_size; moe_ffn = intermediate_size",
     "chunked attention counted as full attention"},

    /* ---- hybrids ---- */
    {"jamba", "llama", "position = 'none'", LINEAR},
    {"zamba", "element-mamba", ZAMBA, LINEAR},
    {"zamba2", "element-mamba2", ZAMBA
     "+layer adapter of the shared block = if(hybrid, adapter_rank * (h + 2 * intermediate_size), 0)", LINEAR},
    {"bailing_hybrid", "llama",
     "width = linear_num_heads * linear_head_dim;"
     "mixer = if((i + 1) % layer_group_size = 0 | i >= floor(L / layer_group_size) * layer_group_size, 'attention', 'linear');"
     "+attention output gate = h * heads;"
     "+linear query, key, value, forget gate, output gate and output = 6 * h * width;"
     "+linear beta = h * linear_num_heads; +linear convolution = 3 * width * (short_conv_kernel_size ?? 4)", LINEAR},
    {"xlstm", NULL,
     "qk = h * qk_dim_factor; v = h * v_dim_factor; gated = 1; norm = 'rmsnorm'; position = 'none'; mixer = 'linear';"
     "ffn = up(ffn_proj_factor * h, ffn_round_up_to_multiple_of);"
     "+linear query and key = 2 * h * qk; +linear value, output gate and output = 3 * h * v;"
     "+linear input and forget gate = 2 * num_heads * (h + 1)", LINEAR},
    {"rwkv", NULL,
     "a = attention_hidden_size ?? h; gated = 0; norm = 'layernorm'; position = 'none'; mixer = 'linear'; ffn = intermediate_size ?? 4 * h;"
     "+linear key, value, receptance and output = 4 * h * a; +linear time mixing = 5 * h; +dense receptance = h * h + 2 * h", LINEAR},
    {"mamba falcon_mamba", "element-mamba", "usually_tied = 1; width = intermediate_size ?? (expand ?? 2) * h; mixer = 'linear'; half = 'none'; norm = 'rmsnorm'; position = 'none'", LINEAR},
    {"mamba2", "element-mamba2", "bare = 1; mixer = 'linear'; half = 'none'; norm = 'rmsnorm'; position = 'none'", LINEAR},
    {"nemotron_h", "element-mamba2",
     "gated = 0; norm = 'rmsnorm'; position = 'none'; layers = len(layers_block_type) ?? num_hidden_layers;"
     "half = if(layers_block_type[i] = 'linear_attention' | layers_block_type[i] = 'mamba'"
     "       | layers_block_type[i] = 'full_attention' | layers_block_type[i] = 'attention', 'none', '')", LINEAR},
    {"bamba", "llama", "mixer = if(in(attn_layer_indices, i), 'attention', 'linear')", LINEAR},
    {"granitemoehybrid", "llama", "", LINEAR},
    {"recurrent_gemma", "gemma",
     "w = lru_width ?? h; ffn = intermediate_size / 2; window = attention_window_size; mixer = if(repeat(block_types ?? _block_types, i) = 'attention', 'attention', 'linear');"
     "+linear input, gate and output projection = 3 * h * w; +linear recurrent gates = 2 * w * w / num_attention_heads;"
     "+linear convolution = (conv1d_width ?? 4) * w", LINEAR},
    {"qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text qwen3_next", "llama",
     "+attention output gate = h * heads * dim", LINEAR},
    {"olmo_hybrid", "llama", "", LINEAR},
    {"kimi_linear", "llama",
     "position = 'none'; n = linear_num_heads ?? linear_attn_config.num_heads; r = linear_head_dim ?? linear_attn_config.head_dim; w = n * r;"
     "+linear query, key, value and output = 4 * h * w; +linear low-rank decay and gate = 2 * r * (h + w);"
     "+linear beta = h * n; +linear convolution = 3 * w * (linear_conv_kernel_dim ?? linear_attn_config.short_conv_kernel_size ?? 4)", LINEAR},
    {"minimax minimax_text", "llama",
     "+linear query, key, value, gate and output = 5 * h * num_attention_heads * (head_dim ?? hidden_size / num_attention_heads)", LINEAR},
    {"falcon_h1", "llama", "mixer = 'both'", LINEAR},
    {"lfm2", "llama",
     "usually_tied = 1; mixer = if(has(layer_types), if(layer_types[i] = 'conv', 'linear', 'attention'), if(in(full_attn_idxs, i), 'attention', 'linear'));"
     "ffn = if(block_auto_adjust_ff_dim ?? 0, up(floor((block_ffn_dim_multiplier ?? 1) * floor(2 * intermediate_size / 3)), block_multiple_of ?? 1), intermediate_size)", LINEAR},
    {"lfm2_moe lfm3", "llama", "usually_tied = 1; +attention gate = if(use_attention_gate ?? 0, h * heads, 0)", LINEAR},

    /* ---- decoders like GPT-2: two matrices, layer norms ---- */
    {"gpt2 gpt-sw3 gpt_bigcode openai-gpt", NULL,
     "gated = 0; norm = 'layernorm'; position = 'learned'; usually_tied = 1; attention_bias = 1; ffn_bias = 1", NULL},
    {"opt biogpt", "gpt2", "", NULL},
    {"bloom", "gpt2", "position = 'alibi'", NULL},
    {"persimmon fuyu", "gpt2", "position = 'rope'; usually_tied = 0", NULL},
    {"xglm", "gpt2", "position = 'none'", NULL},
    {"ctrl", "gpt2", "position = 'none'; attention_bias = 1; +head bias = V", NULL},
    {"xlnet", "gpt2", "causal = 0; position = 'none'; attention_bias = 0; +attention relative positions = h * heads * dim + 5 * heads * dim; +head bias = V", NULL},
    {"xlm", "gpt2", "causal = 0; ffn = 4 * h", NULL},
    {"bart mbart plbart pegasus mvp marian blenderbot blenderbot-small trocr whisper m2m_100 nllb-moe", "gpt2",
     "halves = !(is_decoder ?? 0) & has(encoder_layers); layers = decoder_layers ?? num_hidden_layers; heads = decoder_attention_heads ?? num_attention_heads;"
     "ffn = decoder_ffn_dim; vocab = decoder_vocab_size ?? vocab_size; max_sequence = max_target_positions ?? max_position_embeddings;"
     "+attention cross-attention = if(enc | dec, 0, 4 * h * h + 6 * h)", NULL},
    {"led", "bart", "+attention global query, key and value = if(enc, 3 * h * (h + 1), 0)", NULL},
    {"bigbird_pegasus", "bart", "tied = !((is_decoder ?? 0) & at(transformers_version ?? '4', 0) = '5')", NULL},
    {"pegasus_x", "bart", "no_positions = 1", NULL},
    {"fsmt", "bart", "vocab = tgt_vocab_size; own_tables = 1", NULL},
    {"t5gemma t5gemma_module t5_gemma_module t5gemma_decoder t5gemma_encoder", "gemma2", "own_tables = 1; cross = 1", NULL},
    {"t5gemma2 t5gemma2_text t5gemma2_decoder", "gemma", "cross = 0", NULL},
    {"encoder-decoder", NULL, "own_tables = 1", NULL},
    {"gpt_neox", "gpt2", "position = 'rope'; usually_tied = 0; attention_bias = attention_bias ?? 1", NULL},
    {"gpt_neox_japanese", "gpt_neox", "usually_tied = 1; attention_bias = 0; ffn_bias = 0", NULL},
    {"gpt_neo", "gpt2", "attention_bias = 0", NULL},
    {"gptj codegen", "gpt2", "position = 'rope'; usually_tied = 0; attention_bias = 0", NULL},
    {"mpt", "gpt2", "position = 'alibi'; attention_bias = 0; ffn_bias = 0", NULL},
    {"falcon RefinedWeb RefinedWebModel", "gpt2",
     "position = if(alibi ?? 0, 'alibi', 'rope'); attention_bias = bias ?? 0; ffn_bias = bias ?? 0", NULL},
    {"starcoder2", "gpt2", "position = 'rope'; attention_bias = use_bias ?? 1; ffn_bias = use_bias ?? 1", NULL},
    {"phi", "gpt2", "position = 'rope'; usually_tied = 0", NULL},

    /* ---- encoders ---- */
    {"bert camembert roberta roberta-prelayernorm xlm-roberta xlm-roberta-xl data2vec-text ernie megatron-bert bert-generation big_bird", "gpt2",
     "causal = 0; e = embedding_size ?? input_embedding_size ?? h;"
     "+embedding token types and norm = ((type_vocab_size ?? 0) + 2) * e;"
     "+embedding narrow table with a projection = if(e != h, (e - h) * (V + S) + e * h + h, 0);"
     "+head transform and bias = h * h + 3 * h + V;"
     "+head narrow output table = if(e != h & !(tie_word_embeddings ?? 1), V * (e - h), 0)", NULL},
    {"electra roformer", "bert", "position = if(model_type = 'roformer', 'none', 'learned'); +head transform of the narrow table = h * e - h * h", NULL},
    {"rembert", "bert", "tied = 0; +head wide output table = (V + h) * output_embedding_size - V * h - h * h - if(tie_word_embeddings ?? 1, 0, V * (e - h))", NULL},
    {"roc_bert", "bert",
     "+embedding pronunciation and shape = pronunciation_vocab_size * pronunciation_embed_dim + shape_vocab_size * shape_embed_dim;"
     "+embedding map of the inputs = if(concat_input ?? 1, (h + pronunciation_embed_dim + shape_embed_dim) * h, 0)", NULL},
    {"xmod", "bert", "+dense adapters of the languages = len(languages) * (2 * h * floor(h / adapter_reduction_factor) + h + floor(h / adapter_reduction_factor))", NULL},
    {"git", "gpt2", "usually_tied = 0; towers = 1; +head bias = V", NULL},

    /* ---- towers beside a language model ---- */
    {"whisper_encoder qwen2_audio_encoder qwen3_audio_encoder qwen3_asr_encoder audioflamingo3_encoder voxtral_encoder glmasr_encoder "
     "moss_transcribe_diarize_audio", "gpt2",
     "causal = 0; usually_tied = 1; layers = encoder_layers ?? num_hidden_layers; heads = encoder_attention_heads ?? num_attention_heads;"
     "ffn = encoder_ffn_dim ?? intermediate_size; vocab = 3 * num_mel_bins; max_sequence = max_source_positions ?? max_position_embeddings;"
     "+embedding second convolution = 3 * h * h", NULL},
    {"voxtral_realtime_encoder", "llama",
     "causal = 0; tied = 1; vocab = 3 * num_mel_bins; kv_heads = num_attention_heads; +embedding second convolution = 3 * h * h", NULL},
    {"phi4_multimodal_audio", "llama",
     "causal = 0; tied = 1; layers = num_blocks; vocab = input_size; position = 'none'; norm = 'layernorm';"
     "+layer second feed-forward = 3 * h * intermediate_size; +layer convolutions = 4 * h * h;"
     "+embedding convolutions and projection = (2 + nemo_final_size) * h * h", NULL},
    {"git_vision_model phi4_multimodal_vision", "vit", "", NULL},
    {"got_ocr2_vision", "vit", "ffn = mlp_dim", NULL},
    {"audioflamingo3 musicflamingo qwen2_audio voxtral voxtral_realtime moss_transcribe_diarize qwen3_asr gemma3 t5gemma2_encoder", NULL,
     "towers = 1", NULL},
    {"glmasr", NULL,
     "towers = 1; H = text_config.hidden_size; +embedding projector = 2 * H * (audio_config.intermediate_size + H)", NULL},
    {"got_ocr2", NULL,
     "towers = 1; o = vision_config.output_channels; +embedding projector = 90 * o * o + 4 * o * text_config.hidden_size", NULL},
    {"granite_speech granite_speech_plus", NULL,
     "towers = 1; no_tower = 'projector_config'; d = encoder_config.hidden_dim; p = projector_config.hidden_size; n = projector_config.num_hidden_layers;"
     "+embedding audio encoder = encoder_config.num_layers * d * d * (4 * encoder_config.feedforward_mult + 4 + 3 * encoder_config.conv_expansion_factor);"
     "+embedding query transformer = n * (4 * p * p + 2 * p * projector_config.intermediate_size)"
     "  + n / projector_config.cross_attention_frequency * 2 * p * (p + projector_config.encoder_hidden_size);"
     "+embedding projector = p * text_config.hidden_size", NULL},
    {"distilbert deit vit dinov2 clip_vision_model siglip_vision_model siglip", "gpt2", "causal = 0", NULL},
    {"clip_text_model clip", "gpt2", "", NULL},
    {"albert", "bert", "shared = i > 0", "shared layers counted once"},

    /* ---- encoder and decoder ---- */
    {"t5 mt5 umt5 longt5 switch_transformers", NULL, "halves = 1", NULL},
};
/* clang-format on */

const struct hv__hf_family *hv__hf_families(size_t *n)
{
    *n = HV_COUNT(families);
    return families;
}
