/* forecast.c - two small tables of habits, and histograms of errors that fade.
 *
 * Run times. The best simple predictor known for batch jobs is the mean of the same user's last two
 * similar runs; "similar" is the name of the job here. Without two of those, what was asked (the
 * estimate, the limit or the policy's default) is multiplied by the mean of what the account's runs
 * took relative to it; that mean starts at 1 and follows the last RUNS_REMEMBERED runs. Both tables
 * are direct-mapped caches: constant size, a collision costs a habit, never a wrong answer.
 *
 * Start estimates. When a job starts, the wait that was estimated first is compared with the one it
 * had: log2 of (actual + c) / (planned + c), where c = 30 s keeps short waits from looking like
 * huge errors. The errors are kept in histograms by the length of the planned wait, each new one
 * counting FADING times as much as the one before. The middle and nine in ten of what is to be
 * expected are quantiles of that; a histogram begins with a few made-up errors that are outweighed
 * soon. So the width of an interval is what experience says, not what was assumed. */
#include "sched/forecast.h"

#include "sched/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HABITS = 4096,        /* users times names of jobs that repeat */
    RATIOS = 4096,        /* accounts times ways to ask */
    RUNS_REMEMBERED = 20, /* enough for a mean, few enough to follow a change within days */
    RATIO_MAX = 8,        /* one job that ran a thousand times its estimate says no more */
    NOTES_MAX = 65536,    /* jobs whose first estimate is remembered */
    JOINED_MAX = 16384,   /* submissions between two questions; more: make the plan anew */
    SPANS = 6,
    BINS_PER_OCTAVE = 16, /* 4 %: finer than any estimate is good for */
    BINS = 16 * BINS_PER_OCTAVE,
};
#define SLACK_MS   30000.0
#define FADING     1.002 /* half of the weight is on the last 350: those of one burst err alike */
#define STEP_MAX   1e12
#define UNASKED_MS 3600000.0 /* what runs are compared with when nothing was asked */

struct habit {
    uint64_t key; /* 0: none */
    uint64_t last_ms[2];
    uint32_t count;
};

struct ratio {
    uint64_t key; /* 0: none */
    double mean;
    uint32_t count;
};

struct errors {
    double bins[BINS]; /* -8 ... +8 octaves; what was right is in the middle of one */
    double step;       /* weight of the next one */
};

struct forecast_note {
    uint64_t job, made_ms, start_ms;
};

struct forecast {
    const struct acre_names *names; /* NULL: ids say who is who */
    /* By key % their number: the newer takes the place of the older, so that neither grows. */
    struct habit habits[HABITS];
    struct ratio ratios[RATIOS];
    struct errors errors[SPANS];
    uint64_t compared;
    struct acre_map note_of_job;
    struct forecast_note *notes;
    uint32_t note_count, note_capacity;
    struct plan plan;
};

static void seed(struct errors *errors) {
    /* Ten that were right, five early by up to 4 octaves (others end before their estimates), five
     * late by up to 2: a start, soon outweighed. */
    memset(errors, 0, sizeof(*errors));
    errors->step = 1;
    enum { EARLY = 4 * BINS_PER_OCTAVE, LATE = 2 * BINS_PER_OCTAVE };
    errors->bins[BINS / 2] = 10;
    for (int i = 1; i <= EARLY; i++) {
        errors->bins[BINS / 2 - i] += 5.0 / EARLY;
    }
    for (int i = 1; i <= LATE; i++) {
        errors->bins[BINS / 2 + i] += 5.0 / LATE;
    }
}

struct forecast *forecast_create(const struct acre_names *names) {
    struct forecast *forecast = acre_calloc(1, sizeof(*forecast));
    forecast->names = names;
    for (int i = 0; i < SPANS; i++) {
        seed(&forecast->errors[i]);
    }
    forecast->plan.is_stale = true;
    return forecast;
}

void forecast_destroy(struct forecast *forecast) {
    if (forecast != NULL) {
        plan_finish(&forecast->plan);
        acre_map_finish(&forecast->note_of_job);
        free(forecast->notes);
        free(forecast);
    }
}

size_t forecast_bytes(const struct forecast *forecast) {
    return sizeof(*forecast) + acre_map_bytes(&forecast->note_of_job) +
           forecast->note_capacity * sizeof(*forecast->notes) + plan_bytes(&forecast->plan);
}

struct plan *forecast_plan(struct forecast *forecast) {
    return &forecast->plan;
}

void forecast_changed(struct forecast *forecast) {
    forecast->plan.is_stale = true;
}

void forecast_submitted(struct forecast *forecast, uint64_t job) {
    struct plan *plan = &forecast->plan;
    if (plan->timeline == NULL) { /* nobody asks: the plan is made from the queue */
        return;
    }
    if (plan->joined_count == JOINED_MAX) {
        plan->joined_count = 0;
        plan->built_ms = 0; /* no longer good enough for anything */
        plan->is_stale = true;
        return;
    }
    plan->joined =
        acre_grow(plan->joined, plan->joined_count, &plan->joined_capacity, sizeof(*plan->joined));
    plan->joined[plan->joined_count++] = job;
}

static void drop_note(struct forecast *forecast, uint64_t job, uint32_t at) {
    ACRE_ASSERT(at < forecast->note_count && forecast->notes[at].job == job);
    acre_map_remove(&forecast->note_of_job, job);
    struct forecast_note *last = &forecast->notes[--forecast->note_count];
    if (at != forecast->note_count) {
        acre_map_remove(&forecast->note_of_job, last->job);
        acre_map_put(&forecast->note_of_job, last->job, at);
        forecast->notes[at] = *last;
    }
}

void forecast_forget(struct forecast *forecast, uint64_t job) {
    forecast->plan.is_stale = true;
    uint32_t at = acre_map_get(&forecast->note_of_job, job);
    if (at != ACRE_MAP_NONE) {
        drop_note(forecast, job, at);
    }
}

void forecast_estimated(struct forecast *forecast, uint64_t job, uint64_t now_ms,
                        uint64_t start_ms) {
    if (forecast->note_count == NOTES_MAX ||
        acre_map_get(&forecast->note_of_job, job) != ACRE_MAP_NONE) {
        return;
    }
    forecast->notes = acre_grow(forecast->notes, forecast->note_count, &forecast->note_capacity,
                                sizeof(*forecast->notes));
    forecast->notes[forecast->note_count] = (struct forecast_note){job, now_ms, start_ms};
    acre_map_put(&forecast->note_of_job, job, forecast->note_count++);
}

static double after(uint64_t from_ms, uint64_t at_ms) {
    return at_ms > from_ms ? (double)(at_ms - from_ms) : 0;
}

/* Up to half a minute, and then by eight. */
static uint32_t span_of(double planned_ms) {
    uint32_t span = 0;
    for (double limit_ms = SLACK_MS; planned_ms > limit_ms && span + 1 < SPANS; limit_ms *= 8) {
        span++;
    }
    return span;
}

void forecast_started(struct forecast *forecast, uint64_t job, uint64_t now_ms) {
    forecast->plan.is_stale = true;
    uint32_t at = acre_map_get(&forecast->note_of_job, job);
    if (at == ACRE_MAP_NONE) {
        return;
    }
    const struct forecast_note *note = &forecast->notes[at];
    double planned_ms = after(note->made_ms, note->start_ms);
    double actual_ms = after(note->made_ms, now_ms);
    double octaves = log2((actual_ms + SLACK_MS) / (planned_ms + SLACK_MS));
    double bin = floor(octaves * BINS_PER_OCTAVE + 0.5) + (double)BINS / 2;
    struct errors *errors = &forecast->errors[span_of(planned_ms)];
    errors->bins[(uint32_t)fmin(fmax(bin, 0), BINS - 1)] += errors->step;
    errors->step *= FADING;
    if (errors->step > STEP_MAX) {
        for (int i = 0; i < BINS; i++) {
            errors->bins[i] /= errors->step;
        }
        errors->step = 1;
    }
    forecast->compared++;
    drop_note(forecast, job, at);
}

uint64_t forecast_compared(const struct forecast *forecast) {
    return forecast->compared;
}

/* The factor that this part of the errors is below. */
static double quantile(const struct errors *errors, double part) {
    double sum = 0, total = 0;
    for (int i = 0; i < BINS; i++) {
        total += errors->bins[i];
    }
    int bin = 0;
    while (bin < BINS - 1 && sum + errors->bins[bin] < part * total) {
        sum += errors->bins[bin++];
    }
    double within = errors->bins[bin] > 0 ? (part * total - sum) / errors->bins[bin] : 0;
    return exp2((bin + fmin(within, 1) - 0.5 - (double)BINS / 2) / BINS_PER_OCTAVE);
}

static uint64_t scaled(double planned_ms, double factor) {
    double ms = (planned_ms + SLACK_MS) * factor - SLACK_MS;
    return ms > 0 ? (uint64_t)fmin(ms, 1e16) : 0;
}

struct forecast_wait forecast_wait(const struct forecast *forecast, uint64_t planned_ms) {
    const struct errors *errors = &forecast->errors[span_of((double)planned_ms)];
    return (struct forecast_wait){
        .middle_ms = scaled((double)planned_ms, quantile(errors, 0.5)),
        .least_ms = scaled((double)planned_ms, quantile(errors, 0.05)),
        .most_ms = scaled((double)planned_ms, quantile(errors, 0.95)),
    };
}

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t key = (a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15) + c;
    key = (key ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    key ^= key >> 32;
    return key != 0 ? key : 1;
}

static uint64_t habit_key(const struct forecast *forecast, const struct acre_job_spec *spec) {
    uint32_t name =
        forecast->names != NULL ? acre_names_hash(forecast->names, spec->name) : spec->name;
    return mix(spec->user, name, spec->request.gpus);
}

/* What was asked, and which of the three ways. 0: nothing. */
static uint64_t asked_ms(const struct acre_job_spec *spec) {
    return spec->estimate_ms > 0 ? spec->estimate_ms : spec->limit_ms;
}

static uint64_t ratio_key(const struct acre_job_spec *spec) {
    uint64_t way = spec->estimate_ms > 0 ? 0 : spec->limit_ms > 0 ? 1 : 2;
    return mix(spec->project, spec->user, way);
}

void forecast_ended(struct forecast *forecast, const struct acre_job_spec *spec, uint64_t ran_ms) {
    forecast->plan.is_stale = true;
    uint64_t key = habit_key(forecast, spec);
    struct habit *habit = &forecast->habits[key % HABITS];
    if (spec->name != 0) {
        *habit = habit->key == key ? *habit : (struct habit){.key = key};
        habit->last_ms[habit->count++ % 2] = ran_ms;
    }
    key = ratio_key(spec);
    struct ratio *ratio = &forecast->ratios[key % RATIOS];
    *ratio = ratio->key == key ? *ratio : (struct ratio){.key = key, .mean = 1};
    double asked = asked_ms(spec) > 0 ? (double)asked_ms(spec) : UNASKED_MS;
    double limit = asked_ms(spec) > 0 ? RATIO_MAX : 1e6; /* a run that asked nothing may be long */
    ratio->count += ratio->count < RUNS_REMEMBERED;
    ratio->mean += (fmin((double)ran_ms / asked, limit) - ratio->mean) / (ratio->count + 1.0);
}

/* Without habits: what was asked, as far as it holds. */
static double by_ratio(const struct forecast *forecast, const struct acre_job_spec *spec,
                       uint64_t default_ms) {
    uint64_t key = ratio_key(spec);
    const struct ratio *ratio = &forecast->ratios[key % RATIOS];
    uint64_t asked = asked_ms(spec);
    if (ratio->key != key) {
        return (double)(asked > 0 ? asked : default_ms);
    }
    if (asked > 0) {
        return (double)asked * ratio->mean;
    }
    return ratio->count >= 2 ? UNASKED_MS * ratio->mean : (double)default_ms;
}

uint64_t forecast_run_ms(const struct forecast *forecast, const struct acre_job_spec *spec,
                         uint64_t default_ms) {
    uint64_t key = habit_key(forecast, spec);
    const struct habit *habit = &forecast->habits[key % HABITS];
    bool has_habit = spec->name != 0 && habit->key == key && habit->count >= 2;
    double ms = has_habit ? ((double)habit->last_ms[0] + (double)habit->last_ms[1]) / 2
                          : by_ratio(forecast, spec, default_ms);
    if (spec->limit_ms > 0) {
        ms = fmin(ms, (double)spec->limit_ms);
    }
    return (uint64_t)llround(fmin(fmax(ms, 1), 1e16));
}
