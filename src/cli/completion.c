/* completion.c - `acre completion SHELL` prints a completion script; `acre __complete` answers it.
 *
 * The scripts are a few lines each: they pass the words to `acre __complete`, which answers
 * (complete.c) from the program's own option tables. So completions always match the program. */
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/complete.h"
#include "core/str.h"

#include <string.h>

static const struct {
    const char *shell, *text;
} scripts[] = {
    {"bash", "# bash completion for acre; copy it to /etc/bash_completion.d or source it\n"
             "_acre() {\n"
             "    local line\n"
             "    COMPREPLY=()\n"
             "    while IFS= read -r line; do\n"
             "        case $line in\n"
             "        :files) compopt -o default; COMPREPLY=(); return ;;\n"
             "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
             "        esac\n"
             "    done < <(acre __complete -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
             "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace\n"
             "}\n"
             "complete -F _acre acre\n"},
    {"zsh", "#compdef acre\n"
            "# zsh completion for acre; save it as _acre in a directory of $fpath\n"
            "_acre() {\n"
            "    local line\n"
            "    local -a found\n"
            "    while IFS= read -r line; do\n"
            "        case $line in\n"
            "        :files) _files; return ;;\n"
            "        *) found+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
            "        esac\n"
            "    done < <(acre __complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
            "    _describe acre found\n"
            "}\n"
            "if [ \"$funcstack[1]\" = _acre ]; then _acre \"$@\"; else compdef _acre acre; fi\n"},
    {"fish", "# fish completion for acre; save it as ~/.config/fish/completions/acre.fish\n"
             "function __acre_complete\n"
             "    set -l words (commandline -opc) (commandline -ct)\n"
             "    set -l found (acre __complete -- $words[2..-1] 2>/dev/null)\n"
             "    if test \"$found\" = ':files'\n"
             "        __fish_complete_path (commandline -ct)\n"
             "    else\n"
             "        printf '%s\\n' $found\n"
             "    end\n"
             "end\n"
             "complete -c acre -f -a '(__acre_complete)'\n"},
};

static int run(int argument_count, char **arguments, void *options) {
    (void)argument_count;
    (void)options;
    struct acre_error err = {0};
    for (size_t i = 0; i < ACRE_COUNT(scripts); i++) {
        if (strcmp(scripts[i].shell, arguments[0]) == 0) {
            struct acre_buf out;
            acre_buf_init(&out, 64 << 10);
            acre_buf_puts(&out, scripts[i].text);
            int r = cli_write(&out);
            acre_buf_finish(&out);
            return r;
        }
    }
    char shown[64];
    acre_fail(&err, ACRE_EINVALID, "unknown shell '%s'; accepted: bash, zsh, fish",
              acre_str_show(acre_str_from(arguments[0]), shown, sizeof(shown)));
    return cli_fail(&err);
}

const struct acre_command command_completion = {
    .name = "completion",
    .summary = "print a shell script that completes commands, options and job ids",
    .usage = "acre completion bash|zsh|fish",
    .details = "Examples:\n"
               "  acre completion bash >acre.bash\n"
               "  acre completion fish",
    .min_arguments = 1,
    .max_arguments = 1,
    .takes = "shells",
    .run = run,
};

/* What the daemon knows, when it answers; Tab must not print errors. */
static const struct {
    const char *kind, *path, *list, *id, *help;
} lists[] = {
    {"jobs", "/jobs?limit=200", "jobs", "id", "name"},
    {"nodes", "/nodes", "nodes", "name", "state"},
    {"reservations", "/reservations", "reservations", "id", "state"},
    {"tokens", "/tokens", "tokens", "id", "user"},
};

static void ask_daemon(void *context, const char *kind, struct acre_buf *out) {
    (void)context;
    struct server_address server;
    struct curl_client *client = NULL;
    json_t *answer = NULL;
    const json_t *item;
    size_t at;
    for (size_t i = 0; i < ACRE_COUNT(lists); i++) {
        if (strcmp(lists[i].kind, kind) != 0 ||
            server_find(&(struct server_options){0}, &server, NULL) < 0 ||
            client_create(&server, NULL, &client, NULL) < 0) {
            continue;
        }
        if (client_call(client, "GET", lists[i].path, NULL, &answer, NULL) == 0) {
            json_array_foreach(answer_at(answer, lists[i].list), at, item) {
                char id[64], help[128];
                const char *text = answer_string(item, lists[i].id, NULL);
                text = text != NULL ? text : answer_count(item, lists[i].id, id, sizeof(id));
                acre_str_show_text(acre_str_from(answer_string(item, lists[i].help, "")), help,
                                   sizeof(help));
                acre_buf_printf(out, "%s\t%s\n", text, help);
            }
        }
        json_decref(answer);
        client_destroy(client);
        return;
    }
}

static int run_complete(int argument_count, char **arguments, void *options) {
    (void)options;
    struct acre_buf out;
    size_t count;
    const struct acre_command *const *commands = cli_commands(&count);
    acre_buf_init(&out, 4 << 20);
    if (argument_count > 1) { /* the first is "--" */
        complete_words(commands, count, argument_count - 1, arguments + 1, ask_daemon, NULL, &out);
    }
    int r = cli_write(&out);
    acre_buf_finish(&out);
    return r;
}

const struct acre_command command_complete = {
    .name = "__complete",
    .summary = "complete the last word (used by the scripts of 'acre completion')",
    .usage = "acre __complete -- WORD...",
    .max_arguments = UINT32_MAX,
    .options_first = true,
    .hidden = true,
    .run = run_complete,
};
