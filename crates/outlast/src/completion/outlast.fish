# Completion of outlast for fish. It asks outlast itself, which asks the daemon if one runs.
function __outlast_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l current (commandline --current-token --cut-at-cursor)
    set -l lines (command $words[1] __complete $words[2..] "$current" 2>/dev/null)
    switch "$lines[1]"
        case :files
            __fish_complete_path "$current"
        case :dirs
            __fish_complete_directories "$current" ''
        case ':command *'
            set -l first (math (string split ' ' -- $lines[1])[2] + 2)
            set -l rest $words[$first..]
            complete --do-complete (string join ' ' -- (string escape -- $rest) "$current")
        case '*'
            printf '%s\n' $lines
    end
end
complete --command outlast --keep-order --exclusive --arguments '(__outlast_complete)'
