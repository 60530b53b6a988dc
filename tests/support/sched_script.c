/* sched_script.c - the words of sched_script.h as a table of verbs. */
#include "support/sched_script.h"

#include "core/buf.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS_MAX = 64, WORD_MAX = 256, STEP_MAX = 1024, ROUNDS_MAX = 1000 };

struct script {
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    uint64_t now_ms;
    struct acre_buf log;
    struct acre_sched_action actions[WORD_MAX];
    uint32_t action_count;
    char words[WORDS_MAX][WORD_MAX];
    uint32_t count;
    const char *rest; /* of the step after its first word */
    struct acre_error err;
};

static const char *const action_names[] = {
#define X(name, text) text,
    ACRE_SCHED_ACTIONS(X)
#undef X
};

static void log_word(struct script *script, const char *word, uint64_t job, uint64_t other) {
    if (script->log.length > 0) {
        acre_buf_puts(&script->log, ", ");
    }
    acre_buf_printf(&script->log, "%s %llu", word, (unsigned long long)job);
    if (other != 0) {
        acre_buf_printf(&script->log, ">%llu", (unsigned long long)other);
    }
}

static void on_event(void *context, const struct acre_sched_event *event) {
    struct script *script = context;
    struct acre_job job;
    log_word(script, acre_sched_event_name(event->kind) + 4, event->job, event->other);
    REQUIRE(acre_sched_find(script->sched, event->job, &job)); /* its row can be written */
}

static void on_action(void *context, const struct acre_sched_action *action) {
    struct script *script = context;
    log_word(script, action_names[action->kind], action->job, 0);
    REQUIRE(script->action_count < ACRE_COUNT(script->actions));
    script->actions[script->action_count++] = *action;
}

static uint64_t number(const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text) {
        acre_test_context("'%s' is no number", text);
        REQUIRE(false);
    }
    return value;
}

static uint64_t word_number(const struct script *script, uint32_t at) {
    REQUIRE(at < script->count);
    return number(script->words[at]);
}

static uint64_t ms(const struct script *script, uint32_t at) {
    return word_number(script, at) * 1000;
}

static struct acre_job find(const struct script *script, uint64_t id) {
    struct acre_job job = {0};
    if (!acre_sched_find(script->sched, id, &job)) {
        acre_test_context("there is no job %llu", (unsigned long long)id);
        REQUIRE(false);
    }
    return job;
}

static struct acre_request request_of(const char *text) {
    const char *x = strchr(text, 'x');
    const char *dot = strchr(text, '.');
    size_t length = strlen(text);
    if (x != NULL) {
        return kit_gang((uint32_t)number(text), (uint32_t)number(x + 1), 1000);
    }
    if (dot != NULL) {
        return kit_share((uint32_t)number(dot + 1) * 100);
    }
    if (text[length - 1] == 'm') {
        return kit_memory(number(text));
    }
    if (text[length - 1] == 'c') {
        return kit_cpu(number(text) * 1000, 0);
    }
    return kit_whole((uint32_t)number(text));
}

/* "ok:1+any:2+3" */
static uint32_t dependencies_of(const char *text, struct acre_dependency *dependencies) {
    uint32_t count = 0;
    struct acre_split split = acre_split_begin(acre_str_from(text), '+');
    for (struct acre_str part; acre_split_next(&split, &part); count++) {
        bool ok = part.length > 3 && memcmp(part.data, "ok:", 3) == 0;
        bool any = part.length > 4 && memcmp(part.data, "any:", 4) == 0;
        dependencies[count] = (struct acre_dependency){
            .job = number(part.data + (ok    ? 3
                                       : any ? 4
                                             : 0)),
            .kind = ok    ? ACRE_DEPENDENCY_AFTER_OK
                    : any ? ACRE_DEPENDENCY_AFTER_ANY
                          : ACRE_DEPENDENCY_AFTER,
        };
    }
    return count;
}

static int do_job(struct script *script) {
    struct acre_dependency dependencies[ACRE_JOB_DEPENDENCIES_MAX + 1];
    char project[WORD_MAX + 4];
    snprintf(project, sizeof(project), "p-%s", script->words[2]);
    struct acre_job_spec spec = {
        .id = word_number(script, 1),
        .user = kit_name(script->ledger, script->words[2]),
        .request = request_of(script->words[3]),
        .priority = ACRE_PRIORITY_NORMAL,
        .dependencies = dependencies,
    };
    for (uint32_t i = 4; i < script->count; i++) {
        char *key = script->words[i];
        char *value = strchr(key, '=');
        const char *text = value != NULL ? value + 1 : "1";
        if (value != NULL) {
            *value = 0;
        }
        if (strcmp(key, "project") == 0) {
            snprintf(project, sizeof(project), "%s", text);
        } else if (strcmp(key, "after") == 0) {
            spec.dependency_count = dependencies_of(text, dependencies);
        } else if (strcmp(key, "name") == 0) {
            spec.name = kit_name(script->ledger, text);
        } else if (strcmp(key, "prio") == 0) {
            spec.priority = (enum acre_job_priority)number(text);
        } else {
            const struct {
                const char *key;
                uint64_t *ms;
                uint32_t *count;
                bool *flag;
            } keys[] = {
                {"limit", &spec.limit_ms, NULL, NULL},
                {"est", &spec.estimate_ms, NULL, NULL},
                {"begin", &spec.begin_ms, NULL, NULL},
                {"retries", NULL, &spec.max_retries, NULL},
                {"max", NULL, &spec.array_limit, NULL},
                {"index", NULL, &spec.array_index, NULL},
                {"held", NULL, NULL, &spec.held},
                {"fixed", NULL, NULL, &spec.fixed},
                {"oom", NULL, NULL, &spec.smaller_on_oom},
                {"exclusive", NULL, NULL, &spec.request.exclusive},
            };
            bool known = strcmp(key, "array") == 0;
            spec.array = known ? number(text) : spec.array;
            for (size_t k = 0; k < ACRE_COUNT(keys); k++) {
                if (strcmp(key, keys[k].key) != 0) {
                    continue;
                }
                known = true;
                if (keys[k].ms != NULL) {
                    *keys[k].ms = number(text) * 1000;
                } else if (keys[k].count != NULL) {
                    *keys[k].count = (uint32_t)number(text);
                } else {
                    *keys[k].flag = true;
                }
            }
            REQUIRE(known);
        }
    }
    spec.begin_ms += spec.begin_ms != 0 ? SCRIPT_START_MS : 0;
    spec.project = kit_name(script->ledger, project);
    return acre_sched_submit(script->sched, &spec, script->now_ms, &script->err);
}

static int do_at(struct script *script) {
    script->now_ms = SCRIPT_START_MS + ms(script, 1);
    return 0;
}

static int do_pass(struct script *script) {
    acre_sched_pass(script->sched, script->now_ms,
                    script->count > 1 ? (uint32_t)word_number(script, 1) : 0);
    return 0;
}

/* Launch and start what START was told for. */
static bool carry_out(struct script *script) {
    uint32_t count = script->action_count;
    script->action_count = 0;
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        struct acre_sched_action action = script->actions[i];
        if (action.kind == ACRE_ACTION_START) {
            any = true;
            acre_sched_dispatched(script->sched, action.job, action.attempt, script->now_ms);
            acre_sched_started(script->sched, action.job, action.attempt, script->now_ms);
        }
    }
    return any;
}

static int do_go(struct script *script) {
    bool any = true;
    for (uint32_t i = 0; any && i < ROUNDS_MAX; i++) {
        any = acre_sched_pass(script->sched, script->now_ms, 0) > 0;
        any |= carry_out(script);
        any |= acre_sched_next_ms(script->sched) <= script->now_ms;
    }
    CHECK(!any); /* it settles */
    return 0;
}

static int do_dispatched(struct script *script) {
    struct acre_job job = find(script, word_number(script, 1));
    acre_sched_dispatched(script->sched, job.spec.id, job.attempt, script->now_ms);
    return 0;
}

static int do_started(struct script *script) {
    struct acre_job job = find(script, word_number(script, 1));
    acre_sched_started(script->sched, job.spec.id, job.attempt, script->now_ms);
    return 0;
}

static void end(struct script *script, uint32_t back, enum acre_exit_kind kind, int code) {
    struct acre_job job = find(script, word_number(script, 1));
    struct acre_job_exit exit = {.kind = kind, .code = code};
    acre_sched_exited(script->sched, job.spec.id, job.attempt - back, &exit, script->now_ms);
}

static int do_exit(struct script *script) {
    end(script, 0, ACRE_EXIT_CODE, (int)word_number(script, 2));
    return 0;
}

static int do_late(struct script *script) {
    end(script, 1, ACRE_EXIT_CODE, (int)word_number(script, 2));
    return 0;
}

static int do_die(struct script *script) {
    const char *const kinds[] = {"exit", "signal", "time", "oom", "busy", "nostart", "lost"};
    for (size_t i = 0; i < ACRE_COUNT(kinds); i++) {
        if (strcmp(kinds[i], script->words[2]) == 0) {
            end(script, 0, (enum acre_exit_kind)i, 9);
            return 0;
        }
    }
    REQUIRE(false);
    return 0;
}

static int do_use(struct script *script) {
    struct acre_job job = find(script, word_number(script, 1));
    acre_sched_sampled(script->sched, job.spec.id, job.attempt, (uint32_t)word_number(script, 2),
                       script->now_ms);
    return 0;
}

static int do_cancel(struct script *script) {
    return acre_sched_cancel(script->sched, word_number(script, 1), script->now_ms, &script->err);
}

static int do_hold(struct script *script) {
    return acre_sched_hold(script->sched, word_number(script, 1), script->now_ms, &script->err);
}

static int do_release(struct script *script) {
    return acre_sched_release(script->sched, word_number(script, 1), script->now_ms, &script->err);
}

static int do_prio(struct script *script) {
    return acre_sched_set_priority(script->sched, word_number(script, 1),
                                   (enum acre_job_priority)word_number(script, 2), script->now_ms,
                                   &script->err);
}

static int do_drop(struct script *script) {
    acre_sched_drop(script->sched, word_number(script, 1));
    return 0;
}

static int do_pause(struct script *script) {
    acre_sched_pause(script->sched, strcmp(script->words[0], "pause") == 0);
    return 0;
}

static void read_policy(const char *text, const struct acre_policy *base,
                        struct acre_policy *ret_policy) {
    struct acre_error err = {0};
    if (acre_policy_load("test", acre_str_from(text), base, ret_policy, &err) < 0) {
        CHECK_STR(err.text, "");
        REQUIRE(false);
    }
}

static int do_policy(struct script *script) {
    struct acre_policy plain;
    struct acre_policy policy;
    read_policy(SCRIPT_POLICY, acre_policy_default(), &plain);
    read_policy(script->rest, &plain, &policy);
    acre_sched_set_policy(script->sched, &policy, script->now_ms);
    return 0;
}

/* "1 2 3" of those that wait, or of those that hold GPUs. */
static void show(struct script *script, bool holding, struct acre_buf *text) {
    uint64_t cursor = 0;
    struct acre_job job;
    while (acre_sched_walk(script->sched, &cursor, &job)) {
        if (acre_job_state_holds(job.state) == holding) {
            acre_buf_printf(text, "%s%llu", text->length > 0 ? " " : "",
                            (unsigned long long)job.spec.id);
        }
    }
    if (text->length == 0) {
        acre_buf_puts(text, "-");
    }
}

static int do_list(struct script *script) {
    struct acre_buf text;
    acre_buf_init(&text, 1 << 16);
    show(script, strcmp(script->words[0], "run") == 0, &text);
    CHECK_STR(text.data, script->rest);
    acre_buf_finish(&text);
    return 0;
}

static int do_state(struct script *script) {
    CHECK_STR(acre_job_state_name(find(script, word_number(script, 1)).state), script->words[2]);
    return 0;
}

static int do_where(struct script *script) {
    char text[KIT_TEXT_MAX];
    struct acre_job job = find(script, word_number(script, 1));
    CHECK_STR(kit_where(script->ledger, job.allocation, text, sizeof(text)),
              strchr(script->rest, ' ') + 1);
    return 0;
}

static int do_tries(struct script *script) {
    struct acre_job job = find(script, word_number(script, 1));
    CHECK_U64(job.attempt, word_number(script, 2));
    CHECK_U64(job.retries, word_number(script, 3));
    return 0;
}

static int do_due(struct script *script) {
    uint64_t due = acre_sched_next_ms(script->sched);
    if (strcmp(script->words[1], "now") == 0) {
        CHECK_U64(due, 0);
    } else if (strcmp(script->words[1], "never") == 0) {
        CHECK_U64(due, UINT64_MAX);
    } else {
        CHECK_U64(due, SCRIPT_START_MS + ms(script, 1));
    }
    return 0;
}

static int do_log(struct script *script) {
    CHECK_STR(script->log.data, script->rest);
    acre_buf_clear(&script->log);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(struct script *script);
} verbs[] = {
    {"at", do_at},           {"job", do_job},       {"pass", do_pass},
    {"go", do_go},           {"exit", do_exit},     {"launched", do_dispatched},
    {"started", do_started}, {"late", do_late},     {"die", do_die},
    {"use", do_use},         {"cancel", do_cancel}, {"hold", do_hold},
    {"release", do_release}, {"prio", do_prio},     {"drop", do_drop},
    {"pause", do_pause},     {"resume", do_pause},  {"policy", do_policy},
    {"run", do_list},        {"wait", do_list},     {"state", do_state},
    {"where", do_where},     {"tries", do_tries},   {"due", do_due},
    {"log", do_log},
};

static void split_words(struct script *script, struct acre_str step) {
    struct acre_split split = acre_split_begin(step, ' ');
    script->count = 0;
    script->rest = "";
    for (struct acre_str word; acre_split_next(&split, &word);) {
        if (word.length == 0) {
            continue;
        }
        REQUIRE(script->count < WORDS_MAX);
        REQUIRE(acre_str_copy(script->words[script->count++], WORD_MAX, word));
    }
    memset(script->words + script->count, 0, (WORDS_MAX - script->count) * WORD_MAX);
}

static int run_step(struct script *script, const char *step) {
    split_words(script, acre_str_from(step));
    const char *rest = strchr(step, ' ');
    script->rest = rest != NULL ? rest + 1 : "";
    script->err = (struct acre_error){0};
    for (size_t i = 0; i < ACRE_COUNT(verbs); i++) {
        if (strcmp(verbs[i].name, script->words[0]) == 0) {
            return verbs[i].run(script);
        }
    }
    REQUIRE(false);
    return 0;
}

static void check_all(struct script *script) {
    struct acre_error err = {0};
    acre_sched_check(script->sched, &err);
    CHECK_STR(err.text, "");
    acre_ledger_check(script->ledger, &err);
    CHECK_STR(err.text, "");
}

/* "refuse CODE TEXT STEP" and "bad CODE STEP". */
static void run_refused(struct script *script, const char *step) {
    char code[WORD_MAX];
    char part[WORD_MAX];
    split_words(script, acre_str_from(step));
    bool has_part = strcmp(script->words[0], "refuse") == 0;
    snprintf(code, sizeof(code), "%s", script->words[1]);
    snprintf(part, sizeof(part), "%s", has_part ? script->words[2] : "");
    const char *rest = step;
    for (int i = 0; i < (has_part ? 3 : 2); i++) {
        rest = strchr(rest, ' ') + 1;
    }
    CHECK_STR(acre_error_name(run_step(script, rest)), code);
    CHECK_HAS(script->err.text, part);
}

static void run_line(struct script *script, struct acre_str line) {
    char step[STEP_MAX];
    REQUIRE(acre_str_copy(step, sizeof(step), acre_str_trim(line)));
    acre_test_context("%s", step);
    if (strncmp(step, "refuse ", 7) == 0 || strncmp(step, "bad ", 4) == 0) {
        run_refused(script, step);
    } else if (step[0] != 0 && run_step(script, step) < 0) {
        CHECK_STR(script->err.text, "");
    }
    check_all(script);
}

void sched_script(const char *cluster, const char *policy, const char *text, const char *file,
                  int line) {
    struct script script = {
        .ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, cluster),
        .now_ms = SCRIPT_START_MS,
    };
    acre_buf_init(&script.log, 1 << 20);
    struct acre_policy plain;
    struct acre_policy rules;
    read_policy(SCRIPT_POLICY, acre_policy_default(), &plain);
    read_policy(policy, &plain, &rules);
    struct acre_sched_options options = {
        .ledger = script.ledger,
        .policy = &rules,
        .event = on_event,
        .action = on_action,
        .context = &script,
    };
    script.sched = acre_sched_create(&options);
    struct acre_split split = acre_split_begin(acre_str_from(text), ';');
    for (struct acre_str part; acre_split_next(&split, &part);) {
        run_line(&script, part);
    }
    acre_test_context("end of the script at %s:%d", file, line);
    CHECK(acre_sched_bytes(script.sched) > 0);
    acre_sched_destroy(script.sched);
    kit_destroy(script.ledger);
    acre_buf_finish(&script.log);
    acre_test_context("%s", "");
}
