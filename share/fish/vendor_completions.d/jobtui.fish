# fish completion of jobtui: jobtui completion fish > ~/.config/fish/completions/jobtui.fish
function __jobtui_offer
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] completion fish -- $words[2..-1] 2>/dev/null)
    switch "$found[1]"
        case :file
            __fish_complete_path (commandline -ct)
        case :directory
            __fish_complete_directories (commandline -ct)
        case '*'
            printf '%s\n' $found
    end
end
complete -c jobtui -f -k -a '(__jobtui_offer)'
