/* show_job.c - formats jobs.
 *
 * The last column of the queue explains the state: where a job runs, how it ended, or what it waits
 * for. It is the last to be cut. */
#include "cli/show.h"

#include "cli/when.h"
#include "core/str.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *state;
    enum colour colour;
} colours[] = {
    {"running", ACRE_COLOUR_GREEN},    {"failed", ACRE_COLOUR_RED},
    {"preempted", ACRE_COLOUR_YELLOW}, {"held", ACRE_COLOUR_YELLOW},
    {"canceling", ACRE_COLOUR_YELLOW}, {"scheduled", ACRE_COLOUR_GREEN},
    {"canceled", ACRE_COLOUR_DIM},     {"allocating", ACRE_COLOUR_GREEN},
};

enum colour show_state_colour(const char *state) {
    for (size_t i = 0; i < ACRE_COUNT(colours); i++) {
        if (strcmp(colours[i].state, state) == 0) {
            return colours[i].colour;
        }
    }
    return ACRE_COLOUR_NONE;
}

const char *show_state(const json_t *job) {
    const char *state = answer_string(job, "state", "-");
    bool waits = strcmp(state, "queued") == 0;
    bool live = waits || strcmp(state, "running") == 0 || strcmp(state, "scheduled") == 0 ||
                strcmp(state, "allocating") == 0;
    return live && answer_true(job, "canceling") ? "canceling"
           : waits && answer_true(job, "held")   ? "held"
                                                 : state;
}

char *show_cluster_gpus(const json_t *job, char *text, size_t size) {
    uint64_t gpus = 0, milli = 1000, nodes = 1, mib = 0;
    bool known = answer_u64(job, "request.gpus", &gpus);
    answer_u64(job, "request.share_milli", &milli);
    answer_u64(job, "request.nodes", &nodes);
    bool memory = answer_u64(job, "request.gpu_memory_mib", &mib) && mib > 0;
    char one[32], members[32] = "";
    if (milli == 0 && memory) { /* any GPU with so much */
        acre_format_mib(mib, one, sizeof(one));
    } else if (milli > 0 && milli < 1000) {
        acre_format_milli(milli, one, sizeof(one));
    } else if (known && gpus > 0) {
        snprintf(one, sizeof(one), "%" PRIu64, gpus);
    } else {
        snprintf(one, sizeof(one), "-");
    }
    if (nodes > 1) {
        snprintf(members, sizeof(members), "%" PRIu64 "x", nodes);
    }
    snprintf(text, size, "%s%s", members, one);
    return text;
}

char *show_exit(const json_t *job, char *text, size_t size) {
    const char *kind = answer_string(job, "exit.kind", NULL);
    const json_t *code = answer_at(job, "exit.code");
    long long number = json_integer_value(code);
    if (kind == NULL) {
        snprintf(text, size, "-");
    } else if (strcmp(kind, "exited") == 0 && code != NULL) {
        snprintf(text, size, "%lld", number);
    } else if (strcmp(kind, "killed") == 0 && code != NULL) {
        snprintf(text, size, "signal %lld", number);
    } else {
        snprintf(text, size, "%s", kind);
    }
    return text;
}

/* The number at the end of a device's name, or the name: "sim:gpu-a/3" -> "3". */
static const char *short_device(const char *gpu) {
    const char *slash = strrchr(gpu, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : gpu;
}

/* The number a device's short name is; false when it is none. */
static bool device_number(const char *name, uint64_t *ret_number) {
    return name[0] != '\0' && acre_parse_count("", name, 0, UINT32_MAX, ret_number, NULL) == 0;
}

char *show_where(const json_t *job, char *text, size_t size) {
    const json_t *part;
    size_t i;
    const char *last = "";
    uint64_t number = 0, previous = 0;
    bool in_range = false;
    struct acre_buf out;
    acre_buf_init(&out, size - 1);
    json_array_foreach(answer_at(job, "allocation"), i, part) {
        const char *node = answer_string(part, "node", "?");
        const char *gpu = short_device(answer_string(part, "gpu", ""));
        bool counted = device_number(gpu, &number);
        bool goes_on = strcmp(node, last) == 0;
        bool next = goes_on && counted && number == previous + 1;
        if (in_range && !next) {
            acre_buf_printf(&out, "-%" PRIu64, previous);
        }
        if (!goes_on) {
            acre_buf_printf(&out, "%s%s%s%s", i > 0 ? " " : "", node, gpu[0] != '\0' ? ":" : "",
                            gpu);
        } else if (!next) {
            acre_buf_printf(&out, ",%s", gpu);
        }
        in_range = next;
        previous = counted ? number : UINT64_MAX - 1;
        last = node;
    }
    if (in_range) {
        acre_buf_printf(&out, "-%" PRIu64, previous);
    }
    snprintf(text, size, "%s", out.length > 0 ? out.data : "-");
    acre_buf_finish(&out);
    return text;
}

static bool is_waiting(const json_t *job) {
    return strcmp(answer_string(job, "state", ""), "queued") == 0;
}

char *show_start(const struct show *view, const json_t *job, char *text, size_t size) {
    uint64_t then;
    snprintf(text, size, "-");
    if (!is_waiting(job) && answer_time(job, "started", &then)) {
        return when_relative(then, view->now_ms, text, size);
    }
    if (answer_true(job, "when.known") && answer_time(job, "when.start", &then)) {
        if (then <= view->now_ms + 1000) {
            snprintf(text, size, "soon");
        } else {
            when_relative(then, view->now_ms, text, size);
        }
    }
    return text;
}

/* "retried once, preempted twice"; "-" for an ordinary life. */
static char *put_history(const json_t *job, char *text, size_t size) {
    static const struct {
        const char *path, *word;
    } counts[] = {{"retries", "retried"}, {"preemptions", "preempted"}};
    size_t used = 0;
    snprintf(text, size, "-");
    for (size_t i = 0; i < ACRE_COUNT(counts); i++) {
        uint64_t count = 0;
        if (answer_u64(job, counts[i].path, &count) && count > 0) {
            int length = snprintf(text + used, size - used, "%s%s %" PRIu64 "x",
                                  used > 0 ? ", " : "", counts[i].word, count);
            used = ACRE_MIN(used + (size_t)ACRE_MAX(length, 0), size - 1);
        }
    }
    return text;
}

/* Where it runs, what it waits for, what was wrong, or what became of it. */
static void put_remark(struct text_table *table, const json_t *job) {
    char text[ACRE_SHOW_TEXT_MAX];
    const char *remark = answer_string(job, is_waiting(job) ? "why.text" : "exit.text", NULL);
    if (remark == NULL) {
        remark = show_where(job, text, sizeof(text));
    }
    if (strcmp(remark, "-") == 0) {
        remark = put_history(job, text, sizeof(text));
    }
    show_cell(table, remark);
}

static void put_id(struct text_table *table, const json_t *job) {
    char text[64];
    table_cell(table, ACRE_COLOUR_NONE, answer_count(job, "id", text, sizeof(text)));
}

static void put_name(struct text_table *table, const json_t *job) {
    char text[256];
    uint64_t index;
    const char *name = answer_string(job, "name", NULL);
    if (name == NULL) {
        name = answer_string(job, "command", "-");
    }
    if (answer_u64(job, "array.index", &index)) {
        snprintf(text, sizeof(text), "%.200s[%" PRIu64 "]", name, index);
        name = text;
    }
    show_cell(table, name);
}

static void put_job(const struct show *view, struct text_table *table, const json_t *job) {
    char text[ACRE_SHOW_TEXT_MAX];
    const char *state = show_state(job);
    uint64_t attempt = 0;
    table_row(table);
    put_id(table, job);
    put_name(table, job);
    show_cell(table, answer_string(job, "user", "-"));
    show_cell(table, answer_string(job, "project", "-"));
    table_cell(table, show_state_colour(state), state);
    show_cell(table, show_cluster_gpus(job, text, sizeof(text)));
    show_cell(table, answer_count(job, "priority", text, sizeof(text)));
    bool again = answer_u64(job, "attempt", &attempt) && attempt > 1;
    show_cell(table, again ? answer_count(job, "attempt", text, sizeof(text)) : "-");
    show_cell(table, answer_ago(job, "submitted", view->now_ms, text, sizeof(text)));
    show_cell(table, answer_span(job, is_waiting(job) ? "wait_ms" : "run_ms", text, sizeof(text)));
    show_cell(table, show_start(view, job, text, sizeof(text)));
    const char *ended = show_exit(job, text, sizeof(text));
    bool good = strcmp(ended, "0") == 0 || strcmp(ended, "-") == 0;
    table_cell(table, good ? ACRE_COLOUR_DIM : ACRE_COLOUR_RED, ended);
    put_remark(table, job);
}

void show_jobs(const struct show *view, const json_t *answer) {
    static const struct table_column columns[] = {
        {.heading = "ID", .right = true},
        {.heading = "NAME", .shrink_to = 8},
        {.heading = "USER", .rank = 4, .shrink_to = 6},
        {.heading = "PROJECT", .rank = 9, .shrink_to = 7},
        {.heading = "STATE"},
        {.heading = "GPUS", .right = true},
        {.heading = "PRIO", .right = true, .rank = 7},
        {.heading = "TRY", .right = true, .rank = 6},
        {.heading = "SUBMITTED", .rank = 8},
        {.heading = "TIME", .right = true, .rank = 2},
        {.heading = "START", .rank = 3},
        {.heading = "EXIT", .rank = 1},
        {.heading = "WHERE/WHY", .shrink_to = 16, .cut_end = true},
    };
    struct text_table *table = table_create(columns, ACRE_COUNT(columns));
    const json_t *job;
    size_t i;
    bool simulated = false;
    json_array_foreach(answer_at(answer, "jobs"), i, job) {
        put_job(view, table, job);
        simulated = simulated || answer_true(job, "simulated");
    }
    show_table(view, table,
               "No jobs are queued or running. ('acre queue --all' shows ended jobs.)");
    if (simulated) {
        term_put(&view->term, view->out, ACRE_COLOUR_YELLOW, "SIMULATED GPUs");
        acre_buf_puts(view->out, ": the processes are real, the devices are not.\n");
    }
    if (answer_string(answer, "next", NULL) != NULL) {
        acre_buf_puts(view->out, "There are more jobs; raise --limit to see them.\n");
    }
}

void show_job_ids(const struct show *view, const json_t *answer) {
    const json_t *item;
    size_t i;
    char text[64];
    if (answer_at(answer, "job") != NULL) {
        acre_buf_printf(view->out, "%s\n", answer_count(answer, "job.id", text, sizeof(text)));
    }
    json_array_foreach(answer_at(answer, "jobs"), i, item) {
        if (json_is_integer(item)) {
            acre_buf_printf(view->out, "%" JSON_INTEGER_FORMAT "\n", json_integer_value(item));
        } else {
            acre_buf_printf(view->out, "%s\n", answer_count(item, "id", text, sizeof(text)));
        }
    }
}

static void put_request(const struct show *view, const json_t *job) {
    char gpus[64], text[64];
    struct acre_buf line;
    acre_buf_init(&line, ACRE_SHOW_TEXT_MAX);
    uint64_t number;
    acre_buf_printf(&line, "GPUs %s", show_cluster_gpus(job, gpus, sizeof(gpus)));
    if (answer_u64(job, "request.gpu_memory_mib", &number) && number > 0) {
        acre_buf_printf(&line, ", %s of each", acre_format_mib(number, text, sizeof(text)));
    }
    if (answer_u64(job, "request.cpu_milli", &number) && number > 0) {
        acre_buf_printf(&line, "; CPUs %s", acre_format_milli(number, text, sizeof(text)));
    }
    if (answer_u64(job, "request.ram_mib", &number) && number > 0) {
        acre_buf_printf(&line, "; RAM %s", acre_format_mib(number, text, sizeof(text)));
    }
    static const char *const lists[] = {"request.models", "request.labels"};
    for (size_t l = 0; l < ACRE_COUNT(lists); l++) {
        const json_t *item;
        size_t i;
        json_array_foreach(answer_at(job, lists[l]), i, item) {
            const char *name = json_string_value(item);
            acre_buf_printf(&line, "; %s", name != NULL ? name : "-");
        }
    }
    const char *isolation = answer_string(job, "request.isolation", "none");
    if (strcmp(isolation, "none") != 0) {
        acre_buf_printf(&line, "; isolation %s", isolation);
    }
    if (answer_true(job, "request.exclusive")) {
        acre_buf_puts(&line, "; exclusive");
    }
    show_fact(view, "requested", line.data);
    acre_buf_finish(&line);
}

static void put_times(const struct show *view, const json_t *job) {
    static const struct {
        const char *label, *path;
    } times[] = {{"submitted", "submitted"}, {"started", "started"}, {"ended", "ended"}};
    static const struct {
        const char *label, *path;
    } spans[] = {
        {"waited", "wait_ms"},
        {"ran", "run_ms"},
        {"estimate", "estimate_ms"},
        {"time limit", "time_limit_ms"},
    };
    char text[2 * ACRE_WHEN_MAX];
    uint64_t at;
    for (size_t i = 0; i < ACRE_COUNT(times); i++) {
        if (answer_time(job, times[i].path, &at)) {
            show_fact(view, times[i].label, when_both(at, view->now_ms, text, sizeof(text)));
        }
    }
    for (size_t i = 0; i < ACRE_COUNT(spans); i++) {
        if (answer_u64(job, spans[i].path, &at) && at > 0) {
            show_fact(view, spans[i].label, when_span(at, text, sizeof(text)));
        }
    }
}

/* "in about 5m (14:10:00), 90 % likely between 14:08:00 and 14:20:00"; "" if unknown. */
static char *put_estimate(const struct show *view, const json_t *from, char *text, size_t size) {
    uint64_t start, early, late;
    char about[ACRE_WHEN_MAX], at[ACRE_WHEN_MAX], low[ACRE_WHEN_MAX], high[ACRE_WHEN_MAX];
    text[0] = '\0';
    if (!answer_true(from, "when.known") || !answer_time(from, "when.start", &start)) {
        return text;
    }
    if (start <= view->now_ms + 1000) {
        snprintf(text, size, "very soon");
        return text;
    }
    int used = snprintf(text, size, "in about %s (%s)",
                        when_about(start - view->now_ms, about, sizeof(about)),
                        when_clock(start, view->now_ms, at, sizeof(at)));
    if (used > 0 && (size_t)used < size && answer_time(from, "when.earliest", &early) &&
        answer_time(from, "when.latest", &late)) {
        snprintf(text + used, size - (size_t)used, ", 90 %% likely between %s and %s",
                 when_clock(early, view->now_ms, low, sizeof(low)),
                 when_clock(late, view->now_ms, high, sizeof(high)));
    }
    return text;
}

static void put_allocation(const struct show *view, const json_t *job) {
    const json_t *part;
    size_t i;
    json_array_foreach(answer_at(job, "allocation"), i, part) {
        char line[ACRE_SHOW_TEXT_MAX], share[32], memory[32];
        uint64_t mib = 0;
        bool limited = answer_u64(part, "memory_mib", &mib) && mib > 0;
        snprintf(line, sizeof(line), "%s  %s  share %s%s%s%s", answer_string(part, "node", "?"),
                 answer_string(part, "gpu", "-"),
                 answer_milli(part, "share_milli", share, sizeof(share)), limited ? ", " : "",
                 limited ? acre_format_mib(mib, memory, sizeof(memory)) : "",
                 answer_true(job, "simulated") ? "  (SIMULATED)" : "");
        show_fact(view, i == 0 ? "runs on" : "", line);
    }
}

/* "status 3", "not started: no such directory"; "" when nothing has ended. */
static char *describe_exit(const json_t *job, char *text, size_t size) {
    char number[64];
    const char *kind = answer_string(job, "exit.kind", "");
    const char *detail = answer_string(job, "exit.text", NULL);
    text[0] = '\0';
    if (answer_at(job, "exit") != NULL) {
        snprintf(text, size, "%s%s%s%s", strcmp(kind, "exited") == 0 ? "status " : "",
                 show_exit(job, number, sizeof(number)), detail != NULL ? ": " : "",
                 detail != NULL ? detail : "");
    }
    return text;
}

static void put_exit(const struct show *view, const json_t *job) {
    static const struct {
        const char *label, *path;
    } peaks[] = {{"peak RAM", "exit.peak_ram_mib"}, {"peak GPU", "exit.peak_gpu_mib"}};
    char text[64], line[ACRE_SHOW_TEXT_MAX];
    if (answer_at(job, "exit") == NULL) {
        return;
    }
    show_fact(view, "exit", describe_exit(job, line, sizeof(line)));
    for (size_t i = 0; i < ACRE_COUNT(peaks); i++) {
        show_fact(view, peaks[i].label, answer_mib(job, peaks[i].path, text, sizeof(text)));
    }
    show_fact(view, "CPU time", answer_span(job, "exit.cpu_ms", text, sizeof(text)));
    uint64_t use;
    if (answer_u64(job, "exit.gpu_use_milli", &use)) {
        snprintf(text, sizeof(text), "%" PRIu64 " %%", use / 10);
        show_fact(view, "GPU use", text);
    }
}

static void put_attempts(const struct show *view, const json_t *job) {
    uint64_t attempt = 0, retries = 0, most = 0, preemptions = 0;
    char line[160], often[48] = "";
    answer_u64(job, "attempt", &attempt);
    answer_u64(job, "retries", &retries);
    answer_u64(job, "max_retries", &most);
    answer_u64(job, "preemptions", &preemptions);
    if (attempt <= 1 && most == 0 && preemptions == 0) {
        return;
    }
    if (preemptions == 1) {
        snprintf(often, sizeof(often), "; preempted once");
    } else if (preemptions > 1) {
        snprintf(often, sizeof(often), "; preempted %" PRIu64 " times", preemptions);
    }
    snprintf(line, sizeof(line), "%" PRIu64 " started; %" PRIu64 " of %" PRIu64 " %s used%s",
             attempt, retries, most, most == 1 ? "retry" : "retries", often);
    show_fact(view, "runs", line);
}

void show_job(const struct show *view, const json_t *answer) {
    static const char *const priorities[] = {"-", "1 (low)", "2 (normal)", "3 (high)",
                                             "4 (critical)"};
    const json_t *job = answer_at(answer, "job");
    const char *state = show_state(job);
    char text[ACRE_SHOW_TEXT_MAX];
    uint64_t priority = 0;
    answer_u64(job, "priority", &priority);
    const char *name = answer_string(job, "name", "");
    char id[32], shown[96];
    snprintf(text, sizeof(text), "job %s  %s%s", answer_count(job, "id", id, sizeof(id)),
             acre_str_show_text(acre_str_from(name), shown, sizeof(shown)),
             name[0] != '\0' ? "  " : "");
    term_put(&view->term, view->out, ACRE_COLOUR_BOLD, text);
    term_put(&view->term, view->out, show_state_colour(state), state);
    acre_buf_puts(view->out, "\n");
    snprintf(text, sizeof(text), "%s, project %s", answer_string(job, "user", "-"),
             answer_string(job, "project", "-"));
    show_fact(view, "user", text);
    show_fact(view, "command", answer_string(job, "command", NULL));
    put_request(view, job);
    show_fact(view, "priority", priorities[priority < 5 ? priority : 0]);
    put_times(view, job);
    put_attempts(view, job);
    put_allocation(view, job);
    put_exit(view, job);
    show_fact(view, "why", answer_string(job, "why.text", NULL));
    show_fact(view, "what helps", answer_string(job, "why.advice", NULL));
    if (is_waiting(job)) {
        show_fact(view, "starts", put_estimate(view, job, text, sizeof(text)));
    }
}

/* The daemon's words as a sentence: with its full stop. */
static void put_sentence(struct acre_buf *out, const char *before, const char *text) {
    size_t length = strlen(text);
    bool ended = length > 0 && strchr(".!?", text[length - 1]) != NULL;
    acre_buf_printf(out, "%s%s%s", before, text, ended ? "" : ".");
}

/* Why and when of a job that waits. */
static void put_reason(const struct show *view, const json_t *job, struct acre_buf *line) {
    char text[ACRE_SHOW_TEXT_MAX];
    uint64_t position = 0, ahead = 0;
    acre_buf_printf(line, " is waiting (%s)", answer_string(job, "why.reason", "-"));
    put_sentence(line, ": ", answer_string(job, "why.text", "-"));
    const char *advice = answer_string(job, "why.advice", NULL);
    if (advice != NULL) {
        put_sentence(line, " What helps: ", advice);
    }
    if (answer_u64(job, "why.position", &position) && position > 0) {
        answer_u64(job, "why.ahead", &ahead);
        acre_buf_printf(line, " It is number %" PRIu64 " in the queue, with %" PRIu64 " ahead.",
                        position, ahead);
    }
    put_estimate(view, job, text, sizeof(text));
    if (text[0] != '\0') {
        put_sentence(line, " It starts ", text);
    } else {
        acre_buf_puts(line, " Its start time is unknown.");
    }
}

void show_why(const struct show *view, const json_t *answer) {
    const json_t *job = answer_at(answer, "job");
    char text[ACRE_SHOW_TEXT_MAX], shown[8 * ACRE_SHOW_TEXT_MAX];
    struct acre_buf line;
    acre_buf_init(&line, 8 * ACRE_SHOW_TEXT_MAX);
    acre_buf_printf(&line, "Job %s", answer_count(job, "id", text, sizeof(text)));
    if (answer_at(job, "why") != NULL) {
        put_reason(view, job, &line);
    } else {
        const char *state = show_state(job);
        bool runs = strcmp(state, "running") == 0;
        bool ended = strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0;
        acre_buf_printf(&line, " is not waiting: it %s %s%s%s",
                        ended                            ? "has"
                        : strcmp(state, "canceled") == 0 ? "was"
                                                         : "is",
                        state, runs ? " on " : "", runs ? show_where(job, text, sizeof(text)) : "");
        describe_exit(job, text, sizeof(text));
        if (text[0] != '\0' && !runs) {
            acre_buf_printf(&line, " (%s)", text);
        }
        acre_buf_puts(&line, ".");
    }
    term_wrap(&view->term, view->out, 0,
              acre_str_show_text((struct acre_str){line.data, line.length}, shown, sizeof(shown)));
    acre_buf_finish(&line);
}

void show_job_line(const struct show *view, const json_t *answer) {
    const json_t *job = answer_at(answer, "job");
    char id[32];
    const char *state = show_state(job);
    acre_buf_printf(view->out, "job %s ", answer_count(job, "id", id, sizeof(id)));
    term_put(&view->term, view->out, show_state_colour(state), state);
    acre_buf_putc(view->out, '\n');
}

void show_submitted(const struct show *view, const json_t *answer) {
    const json_t *job = answer_at(answer, "job"), *members = answer_at(answer, "jobs");
    char id[32], start[ACRE_SHOW_TEXT_MAX];
    uint64_t position = 0;
    if (members != NULL) {
        size_t count = json_array_size(members);
        acre_buf_printf(view->out,
                        "array %s queued, %zu job%s: %" JSON_INTEGER_FORMAT
                        " to %" JSON_INTEGER_FORMAT "\n",
                        answer_count(answer, "array", id, sizeof(id)), count, count == 1 ? "" : "s",
                        json_integer_value(json_array_get(members, 0)),
                        json_integer_value(json_array_get(members, count > 0 ? count - 1 : 0)));
        return;
    }
    acre_buf_printf(view->out, "job %s %s", answer_count(job, "id", id, sizeof(id)),
                    show_state(job));
    if (answer_u64(job, "why.position", &position) && position > 0) {
        acre_buf_printf(view->out, ", position %" PRIu64, position);
    }
    if (is_waiting(job) && answer_true(job, "when.known")) {
        show_start(view, job, start, sizeof(start));
        acre_buf_printf(view->out, ", starts %s%s",
                        strncmp(start, "in ", 3) == 0 ? "in about " : "",
                        strncmp(start, "in ", 3) == 0 ? start + 3 : start);
    }
    const char *why = answer_string(job, "why.text", NULL);
    if (why != NULL && strcmp(answer_string(job, "why.reason", ""), "evaluating") != 0) {
        acre_buf_printf(view->out, " (%s)", why);
    }
    acre_buf_putc(view->out, '\n');
}
