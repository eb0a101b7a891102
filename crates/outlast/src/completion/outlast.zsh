#compdef outlast
# Completion of outlast for zsh. It asks outlast itself, which asks the daemon if one runs.
_outlast() {
  local program=${(Q)words[1]/#\~\//$HOME/} line
  local -a lines items
  lines=("${(@f)$("$program" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  case $lines[1] in
    :files) _files; return ;;
    :dirs) _files -/; return ;;
    :command\ *)
      local -i skipped=$((${lines[1]#* } + 1))
      shift skipped words
      ((CURRENT -= skipped))
      _normal
      return ;;
  esac
  for line in $lines; do
    items+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  (( $#items )) && _describe -V outlast items
}
if [ "$funcstack[1]" = _outlast ]; then _outlast "$@"; else compdef _outlast outlast; fi
