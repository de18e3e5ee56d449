_hetviz() {
  local cur=${COMP_WORDS[COMP_CWORD]}
  if [ $COMP_CWORD = 1 ]; then COMPREPLY=($(compgen -f -W 'plan compare eval gantt schedule solve bound explain failures strategies selftest validate profile check import new-plugin lua completion help ' -- "$cur")); return; fi
  local words=
  case ${COMP_WORDS[1]} in
  plan) words='--cluster --model --job --strategy --option --replan --lost --out --json --time-limit --help --seed --budget --quiet --plain ';;
  compare) words='--cluster --model --job --strategies --option --json --time-limit --jobs --help --seed --budget --quiet --plain ';;
  eval) words='--cluster --model --job --json --help --seed --budget --quiet --plain ';;
  gantt) words='--cluster --model --job --width --ascii --links --svg --png --trace --help --seed --budget --quiet --plain ';;
  schedule) words='--ranks --micro-batches --chunks --option --times --plan-times --scale --hops --limits --cap --jitter --look-ahead --gantt --width --ascii --json --svg --png --help --seed --budget --quiet --plain ';;
  solve) words='--json --time-limit --certify --write-lp --help --seed --budget --quiet --plain ';;
  bound) words='--cluster --model --job --json --help --seed --budget --quiet --plain ';;
  explain) words='--cluster --model --job --json --stage --replica --help --seed --budget --quiet --plain ';;
  failures) words='--cluster --model --job --json --lost --preempted --checkpoint --restart --regroup --time-limit --help --seed --budget --quiet --plain ';;
  strategies) words='--json --help --seed --budget --quiet --plain ';;
  selftest) words='--times --help --seed --budget --quiet --plain ';;
  validate) words='--json --data --shipped --fit --svg --help --seed --budget --quiet --plain ';;
  profile) words='--json --out --quick --fresh --device --as --show --svg --help --seed --budget --quiet --plain ';;
  check) words='--help --seed --budget --quiet --plain ';;
  import) words='--out --device --help --seed --budget --quiet --plain ';;
  new-plugin) words='--out --help --seed --budget --quiet --plain ';;
  lua) words='--cluster --model --job --help --seed --budget --quiet --plain ';;
  completion) words='--help --seed --budget --quiet --plain ';;
  help) words='--help --seed --budget --quiet --plain ';;
  esac
  local at=$((COMP_CWORD - 1)) me=${COMP_WORDS[0]} key=
  case ${COMP_WORDS[1]} in
  schedule)
    if [ $COMP_CWORD = 2 ]; then COMPREPLY=($(compgen -f -W "$("$me" completion schedules 2>/dev/null)" -- "$cur")); return; fi
    if [ "$cur" = '=' ]; then key=${COMP_WORDS[at]}; cur=; at=$((at - 1))
    elif [ "${COMP_WORDS[at]}" = '=' ]; then key=${COMP_WORDS[at - 1]}; at=$((at - 2)); fi
    case ${COMP_WORDS[at]} in -o|--option)
      words=$("$me" completion schedules "${COMP_WORDS[2]}" 2>/dev/null)
      [ -n "$key" ] && words=$(echo "$words" | sed -n "s/^$key=//p")
      COMPREPLY=($(compgen -W "$words" -- "$cur"))
      [ "${COMPREPLY[0]: -1}" = '=' ] && compopt -o nospace 2>/dev/null
      return;; esac;;
  import)
    if [ $COMP_CWORD = 2 ]; then COMPREPLY=($(compgen -W 'auto local onnx nvidia_smi_xml nccl_topo_xml nvidia_smi_q_text nvidia_smi_nvlink nvidia_smi_L nvidia_smi_topo nccl_tests nvbandwidth slurm_json k8s_nodes safetensors_index chrome_trace deepspeed hf_config sbatch torchtitan_toml megatron_args megatron_yaml accelerate_yaml pipelining_csv slurm cloud_prices nvidia_smi_csv' -- "$cur")); return; fi;;
  help)
    COMPREPLY=($(compgen -W "schedules glossary api man $("$me" completion schedules 2>/dev/null)" -- "$cur")); return;;
  esac
  case $cur in -*) COMPREPLY=($(compgen -W "$words" -- "$cur"));; *) COMPREPLY=($(compgen -f -- "$cur"));; esac
}
complete -F _hetviz hetviz
