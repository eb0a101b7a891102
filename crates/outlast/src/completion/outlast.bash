# Completion of outlast for bash. It asks outlast itself, which asks the daemon if one runs.
_outlast() {
  local program="${COMP_WORDS[0]/#\~/$HOME}" current="${COMP_WORDS[COMP_CWORD]}" line
  local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  [ "$current" = = ] && current=
  while IFS= read -r line; do
    case "$line" in
      :files) compopt -o filenames 2>/dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current") ;;
      :dirs) compopt -o filenames 2>/dev/null
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$current") ;;
      :command\ *)
        if declare -F _comp_command_offset >/dev/null; then _comp_command_offset "$((${line#* } + 1))"
        elif declare -F _command_offset >/dev/null; then _command_offset "$((${line#* } + 1))"
        else
          compopt -o filenames 2>/dev/null
          local kind=-f
          [ "$COMP_CWORD" -eq "$((${line#* } + 1))" ] && kind=-c
          while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$kind" -- "$current")
        fi ;;
      *) COMPREPLY+=("$(printf %q "${line%%$'\t'*}")") ;;
    esac
  done < <("$program" __complete "${words[@]}" 2>/dev/null)
  # Bash takes what follows a colon for a word of its own.
  if [[ "$current" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
    COMPREPLY=("${COMPREPLY[@]#"${current%:*}:"}")
  fi
}
complete -F _outlast outlast
