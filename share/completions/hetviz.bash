_hetviz() {
  local cur=${COMP_WORDS[COMP_CWORD]} me=${COMP_WORDS[0]} i
  if [ $COMP_CWORD = 1 ]; then
    case $cur in
    -*) COMPREPLY=($(compgen -W '--ascii --plain --no-mouse --color --theme --script --dump --out --size --version ' -- "$cur"));;
    *) COMPREPLY=($(compgen -f -W 'plan compare eval gantt schedule solve bound explain failures shard sweep strategies selftest validate calibrate profile check import export new-plugin lua completion help ' -- "$cur"));;
    esac
    return
  fi
  # bash parts words at =: KEY = VALUE, or --option = value
  local at=$((COMP_CWORD - 1)) key= from= many= options= strategy= words= head=
  if [ "$cur" = '=' ]; then cur=; at=$COMP_CWORD; fi
  if [ "${COMP_WORDS[at]}" = '=' ]; then
    key=${COMP_WORDS[at - 1]}; at=$((at - 2))
    case $key in -*) key=; at=$((at + 1));; esac
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in -s|--strategy|--strategies)
      strategy=${COMP_WORDS[i + 1]}
      [ "$strategy" = '=' ] && strategy=${COMP_WORDS[i + 2]};; esac
  done
  case ${COMP_WORDS[1]} in
  plan) options='--cluster --model --job --strategy --option --replan --lost --out --json --time-limit --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -c|--cluster) from=clusters;;
      -m|--model) from=models;;
      -j|--job) from=jobs;;
      -s|--strategy) from=strategies many=1;;
      -o|--option) from=options;;
      --replan) from=plans;;
      -*) from=;;
    esac;;
  compare) options='--cluster --model --job --strategies --option --target --json --time-limit --jobs --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -c|--cluster) from=clusters;;
      -m|--model) from=models;;
      -j|--job) from=jobs;;
      -s|--strategies) from=strategies many=1;;
      -o|--option) from=options;;
      --target) from=targets;;
      -*) from=;;
    esac;;
  eval) options='--cluster --model --job --json --time-limit --help --seed --budget --quiet --plain ' from=plans
    case ${COMP_WORDS[at]} in
      -c|--cluster) from=clusters;;
      -m|--model) from=models;;
      -j|--job) from=jobs;;
      -*) from=;;
    esac;;
  gantt) options='--cluster --model --job --width --ascii --links --svg --png --trace --help --seed --budget --quiet --plain ' from=plans
    case ${COMP_WORDS[at]} in
      -c|--cluster) from=clusters;;
      -m|--model) from=models;;
      -j|--job) from=jobs;;
      -*) from=;;
    esac;;
  schedule) options='--ranks --micro-batches --chunks --option --times --plan-times --scale --hops --limits --cap --jitter --look-ahead --gantt --width --ascii --json --svg --png --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -o|--option) from=schedules;;
      -*) from=;;
    esac;;
  solve) options='--json --time-limit --certify --write-lp --help --seed --budget --quiet --plain ' from=instances
    case ${COMP_WORDS[at]} in
      -*) from=;;
    esac;;
  bound) options='--cluster --model --job --json --time-limit --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -c|--cluster) from=clusters;;
      -m|--model) from=models;;
      -j|--job) from=jobs;;
      -*) from=;;
    esac;;
  explain) options='--cluster --model --job --json --time-limit --stage --replica --help --seed --budget --quiet --plain ' from=plans
    case ${COMP_WORDS[at]} in
      -c|--cluster) from=clusters;;
      -m|--model) from=models;;
      -j|--job) from=jobs;;
      -*) from=;;
    esac;;
  failures) options='--cluster --model --job --json --lost --preempted --checkpoint --restart --regroup --time-limit --help --seed --budget --quiet --plain ' from=plans
    case ${COMP_WORDS[at]} in
      -c|--cluster) from=clusters;;
      -m|--model) from=models;;
      -j|--job) from=jobs;;
      -*) from=;;
    esac;;
  shard) options='--json --mesh --split --grad --sequences --tokens --graph --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -*) from=;;
    esac;;
  sweep) options='--out --shards --shard --jobs --failed --time-limit --slurm --gnu-parallel --retries --dry-run --where --sort --columns --most --pareto --json --csv --svg --x --y --value --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      --sort) from=columns;;
      --columns) from=columns many=1;;
      --pareto) from=figures many=1;;
      --x) from=columns;;
      --y) from=columns;;
      --value) from=figures;;
      -*) from=;;
    esac;;
  strategies) options='--json --kind --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      --kind) from=devices;;
      -*) from=;;
    esac;;
  selftest) options='--times --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -*) from=;;
    esac;;
  validate) options='--json --data --shipped --fit --svg --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -*) from=;;
    esac;;
  calibrate) options='--plan --cluster --model --job --out --json --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      --plan) from=plans;;
      -c|--cluster) from=clusters;;
      -m|--model) from=models;;
      -j|--job) from=jobs;;
      -*) from=;;
    esac;;
  profile) options='--json --out --quick --fresh --device --as --show --svg --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      --as) from=devices;;
      -*) from=;;
    esac;;
  check) options='--help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -*) from=;;
    esac;;
  import) options='--out --device --json --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      --device) from=devices;;
      -*) from=;;
    esac;;
  export) options='--to --out --nearest --cluster --model --job --help --seed --budget --quiet --plain ' from=plans
    case ${COMP_WORDS[at]} in
      --to) from=targets;;
      -c|--cluster) from=clusters;;
      -m|--model) from=models;;
      -j|--job) from=jobs;;
      -*) from=;;
    esac;;
  new-plugin) options='--out --family --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -*) from=;;
    esac;;
  lua) options='--cluster --model --job --help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -c|--cluster) from=clusters;;
      -m|--model) from=models;;
      -j|--job) from=jobs;;
      -*) from=;;
    esac;;
  completion) options='--help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -*) from=;;
    esac;;
  help) options='--help --seed --budget --quiet --plain '
    case ${COMP_WORDS[at]} in
      -*) from=;;
    esac;;
  -*) options='--ascii --plain --no-mouse --color --theme --script --dump --out --size --version ';;
  esac
  case ${COMP_WORDS[1]} in
  schedule)
    if [ $COMP_CWORD = 2 ]; then COMPREPLY=($(compgen -f -W "$("$me" completion schedules 2>/dev/null)" -- "$cur")); return; fi
    strategy=${COMP_WORDS[2]};;
  import)
    if [ $COMP_CWORD = 2 ]; then COMPREPLY=($(compgen -f -W 'auto local onnx stablehlo nvidia_smi_xml nccl_topo_xml nvidia_smi_q_text nvidia_smi_nvlink nvidia_smi_L nvidia_smi_topo nccl_tests nvbandwidth slurm_json k8s_nodes safetensors_index chrome_trace deepspeed hf_config sbatch torchtitan_toml megatron_args megatron_yaml accelerate_yaml pipelining_csv slurm cloud_prices nvidia_smi_csv' -- "$cur")); return; fi;;
  strategies|selftest) case $cur in -*) ;; *) COMPREPLY=($(compgen -W "$("$me" completion strategies 2>/dev/null)" -- "$cur")); return;; esac;;
  help)
    COMPREPLY=($(compgen -W "schedules runtimes targets glossary knobs api man $("$me" completion schedules 2>/dev/null)" -- "$cur")); return;;
  esac
  case $cur in -*) COMPREPLY=($(compgen -W "$options" -- "$cur")); return;; esac
  if [ -z "$from" ]; then COMPREPLY=($(compgen -f -- "$cur")); return; fi
  case $from:$key:$cur in options::*.*) head=${cur%%.*}.; strategy=${cur%%.*}; cur=${cur#*.};; esac
  words=$("$me" completion $from ${strategy:+"$strategy"} 2>/dev/null)
  case $from in
  options|schedules)
    [ -n "$key" ] && words=$(echo "$words" | sed -n "s/^${key##*.}=//p" 2>/dev/null)
    COMPREPLY=($(compgen -P "$head" -W "$words" -- "$cur"))
    [ "${COMPREPLY[0]: -1}" = '=' ] && compopt -o nospace 2>/dev/null
    return;;
  esac
  if [ -n "$many" ]; then head=${cur%"${cur##*[,+]}"}; fi
  COMPREPLY=($(compgen -P "$head" -W "$words" -- "${cur#"$head"}"))
  [ -n "$many" ] || COMPREPLY+=($(compgen -f -- "$cur"))
}
complete -F _hetviz hetviz
