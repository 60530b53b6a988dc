/* store_kit.c - see the header. */
#include "support/store_kit.h"

#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAIT_MS = 30000, TEXTS = 80, TEXT_MAX = 96, LISTS = 4, LIST_MAX = 8192 };

const struct bed kit_beds[] = {
    {.name = "sqlite", .url = NULL, .with_loop = false},
    {.name = "sqlite with a loop", .url = NULL, .with_loop = true},
    {.name = "memory", .url = "memory:", .with_loop = false},
    {.name = "memory with a loop", .url = "memory:", .with_loop = true},
};
const size_t kit_bed_count = ACRE_COUNT(kit_beds);

struct bed bed_make(const struct bed *kind) {
    struct bed bed = *kind;
    bed.tree = tree_create(NULL);
    snprintf(bed.path, sizeof(bed.path), "%s", tree_path(&bed.tree, "acre.db"));
    if (bed.with_loop) {
        REQUIRE_EQ(acre_loop_create(&bed.loop, NULL), 0);
    }
    bed_open(&bed);
    return bed;
}

void bed_remove(struct bed *bed) {
    bed_close(bed);
    acre_loop_destroy(bed->loop);
    tree_erase(&bed->tree);
}

void bed_each(void (*test)(struct bed *bed)) {
    for (size_t i = 0; i < kit_bed_count; i++) {
        struct bed bed = bed_make(&kit_beds[i]);
        acre_test_context("%s", bed.name);
        test(&bed);
        bed_remove(&bed);
    }
    acre_test_context("%s", "");
}

int bed_try_open(struct bed *bed, struct acre_error *err) {
    char url[128];
    snprintf(url, sizeof(url), "sqlite:%s", bed->path);
    struct acre_store_options options = {.url = bed->url != NULL ? bed->url : url,
                                         .loop = bed->loop};
    bed->store = NULL;
    return acre_store_open(&options, &bed->store, err);
}

void bed_open(struct bed *bed) {
    struct acre_error err = {0};
    int r = bed_try_open(bed, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
}

void bed_close(struct bed *bed) {
    acre_store_close(bed->store);
    bed->store = NULL;
}

static const char *text_of(const char *what, uint64_t number) {
    static char texts[TEXTS][TEXT_MAX];
    static unsigned next;
    char *text = texts[next++ % TEXTS];
    snprintf(text, TEXT_MAX, "%s-%" PRIu64, what, number);
    return text;
}

struct acre_store_job kit_job(uint64_t id) {
    return (struct acre_store_job){
        .id = id,
        .user = text_of("user", id % 3),
        .project = text_of("project", id % 2),
        .name = text_of("name", id),
        .state = "queued",
        .live = true,
        .priority = 1 + (uint32_t)id % 4,
        .array = id % 5 == 0 ? 0 : id - id % 5,
        .attempt = (uint32_t)id,
        .submitted_ms = UINT64_C(1700000000000) + id,
        .started_ms = 0,
        .ended_ms = 0,
        .spec = acre_str_from(text_of("{\"spec\": \"\xc3\xa4\"}", id)),
        .detail = acre_str_from(text_of("{\"detail\": 1}", id)),
    };
}

struct acre_store_audit kit_audit(const char *action, const char *target) {
    return (struct acre_store_audit){.at_ms = 1700000000000,
                                     .actor = "user:ada",
                                     .origin = "unix:1000",
                                     .action = action,
                                     .target = target,
                                     .result = "ok",
                                     .detail = "on paper"};
}

static void check_view(struct acre_str a, struct acre_str b) {
    CHECK_U64(a.length, b.length);
    CHECK(a.length != b.length || a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

void kit_check_job(const struct acre_store_job *job, const struct acre_store_job *expected) {
    CHECK_U64(job->id, expected->id);
    CHECK_STR(job->user, expected->user);
    CHECK_STR(job->project, expected->project);
    CHECK_STR(job->name, expected->name);
    CHECK_STR(job->state, expected->state);
    CHECK_EQ(job->live, expected->live);
    CHECK_U64(job->priority, expected->priority);
    CHECK_U64(job->array, expected->array);
    CHECK_U64(job->attempt, expected->attempt);
    CHECK_U64(job->submitted_ms, expected->submitted_ms);
    CHECK_U64(job->started_ms, expected->started_ms);
    CHECK_U64(job->ended_ms, expected->ended_ms);
    check_view(job->spec, expected->spec);
    check_view(job->detail, expected->detail);
}

void kit_count_done(void *context, int code, const struct acre_error *err) {
    struct kit_count *count = context;
    CHECK_EQ(code, err->code);
    count->done++;
    count->failed += code < 0;
    if (count->loop != NULL && count->done == count->wanted) {
        acre_loop_stop(count->loop);
    }
}

static void give_up(void *context) {
    (void)context;
    acre_check(false, true, "the store answered in time", __FILE__, __LINE__);
}

void kit_wait(struct kit_count *count, unsigned wanted) {
    if (count->loop != NULL && count->done < wanted) {
        count->wanted = wanted;
        struct acre_timer *timer = acre_loop_timer(count->loop, WAIT_MS, 0, give_up, NULL);
        acre_loop_run(count->loop);
        acre_timer_cancel(timer);
    }
    CHECK_U64(count->done, wanted);
}

struct answer {
    struct kit_count count; /* first */
    struct acre_error err;
};

static void on_answer(void *context, int code, const struct acre_error *err) {
    struct answer *answer = context;
    answer->err = *err;
    kit_count_done(&answer->count, code, err);
}

int bed_commit(struct bed *bed, struct acre_batch *batch, struct acre_error *err) {
    struct answer answer = {.count = {.loop = bed->loop}};
    acre_store_commit(bed->store, batch, on_answer, &answer);
    kit_wait(&answer.count, 1);
    if (err != NULL) {
        *err = answer.err;
    }
    return answer.err.code;
}

void bed_commit_ok(struct bed *bed, struct acre_batch *batch) {
    struct acre_error err = {0};
    int r = bed_commit(bed, batch, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
}

void bed_add_jobs(struct bed *bed, uint64_t first, uint64_t last) {
    struct acre_batch *batch = acre_batch_create();
    for (uint64_t id = first; id <= last; id++) {
        struct acre_store_job job = kit_job(id);
        acre_batch_add_job(batch, &job);
    }
    bed_commit_ok(bed, batch);
}

struct list {
    char *text;
    size_t length;
};

static struct list list_begin(void) {
    static char lists[LISTS][LIST_MAX];
    static unsigned next;
    char *text = lists[next++ % LISTS];
    text[0] = '\0';
    return (struct list){.text = text};
}

static void list_add(struct list *list, uint64_t number) {
    list->length += (size_t)snprintf(list->text + list->length, LIST_MAX - list->length,
                                     "%s%" PRIu64, list->length > 0 ? " " : "", number);
    REQUIRE(list->length < LIST_MAX);
}

static bool list_job(void *context, const struct acre_store_job *job) {
    list_add(context, job->id);
    return true;
}

static bool list_audit(void *context, const struct acre_store_audit *audit) {
    list_add(context, audit->seq);
    return true;
}

const char *kit_ids(struct acre_store *store, const struct acre_job_filter *filter) {
    struct list list = list_begin();
    struct acre_error err = {0};
    int r = acre_store_jobs(store, filter, list_job, &list, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    return list.text;
}

const char *kit_seqs(struct acre_store *store, const struct acre_audit_filter *filter) {
    struct list list = list_begin();
    struct acre_error err = {0};
    int r = acre_store_audit(store, filter, list_audit, &list, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    return list.text;
}
