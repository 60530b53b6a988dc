/* sampler.c - a thread that waits on a condition with a timeout, reads, and posts.
 *
 * It reads again only after the last round was taken: a busy loop gets fewer readings, never a
 * queue of old ones. */
#include "daemon/sampler.h"

#include "core/clock.h"
#include "core/thread.h"
#include "device/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct round;

struct sampler {
    struct sampler_options options;
    struct acre_clock clock;
    struct acre_device_reading *readings;
    uint64_t *xid_events; /* seen so far, by device there */
    pthread_t thread;
    pthread_mutex_t lock; /* of the three below */
    pthread_cond_t change;
    bool busy, stopping, pending; /* pending: a round waits for the loop */
    bool hurry;
    struct round *posted; /* what the loop has not taken yet */
};

struct round {
    struct sampler *sampler;
    struct sampled_round round;
};

/* Throttling by heat or by the hardware; a power limit is an ordinary thing. */
static bool is_slowed(uint64_t reasons) {
    return (reasons >> ACRE_THROTTLE_hardware_slowdown & 1) != 0 ||
           (reasons >> ACRE_THROTTLE_software_thermal & 1) != 0 ||
           (reasons >> ACRE_THROTTLE_hardware_thermal & 1) != 0 ||
           (reasons >> ACRE_THROTTLE_power_brake & 1) != 0;
}

static void fill_health(struct sampler *sampler, uint32_t index,
                        const struct acre_device_sample *sample, struct sampled_device *to) {
    const struct acre_device_info *info = acre_devices_info(sampler->options.devices, index);
    struct acre_health_sample *health = &to->health;
#define TAKE(bit, known, field, value)                                                             \
    if (known) {                                                                                   \
        health->valid |= (bit);                                                                    \
        health->field = (value);                                                                   \
    }
    TAKE(ACRE_HEALTH_TEMPERATURE, ACRE_HAS(sample, ACRE_SAMPLE, temperature_c), temperature_c,
         (int32_t)sample->temperature_c)
    TAKE(ACRE_HEALTH_MAX_TEMPERATURE, ACRE_HAS(info, ACRE_INFO, temperature_slowdown_c),
         max_temperature_c, (int32_t)info->temperature_slowdown_c)
    TAKE(ACRE_HEALTH_THROTTLING, ACRE_HAS(sample, ACRE_SAMPLE, throttle_reasons), throttling,
         is_slowed(sample->throttle_reasons))
    TAKE(ACRE_HEALTH_POWER, ACRE_HAS(sample, ACRE_SAMPLE, power_mw), power_mw, sample->power_mw)
    TAKE(ACRE_HEALTH_POWER_LIMIT, ACRE_HAS(sample, ACRE_SAMPLE, power_limit_mw), power_limit_mw,
         sample->power_limit_mw)
    TAKE(ACRE_HEALTH_ECC, ACRE_HAS(sample, ACRE_SAMPLE, ecc_uncorrected), ecc_errors,
         sample->ecc_uncorrected)
#undef TAKE
    if (ACRE_HAS(sample, ACRE_SAMPLE, xid_events) && ACRE_HAS(sample, ACRE_SAMPLE, xid_last) &&
        sample->xid_events > sampler->xid_events[index]) {
        sampler->xid_events[index] = sample->xid_events;
        to->xids[0] = (uint32_t)sample->xid_last;
        health->valid |= ACRE_HEALTH_XIDS;
        health->xid_count = 1;
    }
}

static void add_processes(struct sampler *sampler, uint32_t index, const char *id,
                          struct sampled_round *round) {
    const struct acre_process_list *list = &sampler->readings[index].processes;
    round->processes = acre_realloc(round->processes, round->process_count + list->count + 1U,
                                    sizeof(*round->processes));
    for (uint32_t i = 0; i < list->count; i++) {
        const struct acre_device_process *process = &list->items[i];
        round->processes[round->process_count++] = (struct acre_watchdog_process){
            .pid = (int64_t)process->pid,
            .device = id,
            .mib =
                ACRE_HAS(process, ACRE_PROCESS, memory_mib) ? process->memory_mib : ACRE_UNKNOWN};
    }
}

static void round_destroy(struct round *made) {
    if (made != NULL) {
        free(made->round.devices);
        free(made->round.processes);
        free(made);
    }
}

static void deliver(void *context) {
    struct round *made = context;
    struct sampler *sampler = made->sampler;
    for (uint32_t i = 0; i < made->round.device_count; i++) {
        made->round.devices[i].health.xids = made->round.devices[i].xids;
    }
    sampler->options.deliver(sampler->options.context, &made->round);
    pthread_mutex_lock(&sampler->lock);
    sampler->pending = false;
    sampler->posted = NULL;
    pthread_mutex_unlock(&sampler->lock);
    round_destroy(made);
}

static struct round *read_all(struct sampler *sampler) {
    struct acre_devices *devices = sampler->options.devices;
    uint32_t count = acre_devices_count(devices);
    struct round *made = acre_calloc(1, sizeof(*made));
    made->sampler = sampler;
    made->round.devices = acre_calloc(count + 1U, sizeof(*made->round.devices));
    acre_devices_read(devices, acre_clock_wall_ms(&sampler->clock), NULL, 0, sampler->readings);
    made->round.monotonic_ms = acre_clock_monotonic_ns(&sampler->clock) / 1000000;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = sampler->options.map[i];
        if (index == UINT32_MAX) {
            continue;
        }
        struct sampled_device *to = &made->round.devices[made->round.device_count++];
        to->device = index;
        to->live = acre_machine_live(&sampler->readings[i].sample);
        fill_health(sampler, i, &sampler->readings[i].sample, to);
        add_processes(sampler, i, acre_devices_info(devices, i)->id, &made->round);
    }
    return made;
}

/* Wait until the next round is due; false: stop. */
static bool wait_turn(struct sampler *sampler) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&sampler->lock);
    uint64_t wait_ms = sampler->busy ? sampler->options.busy_ms : sampler->options.idle_ms;
    until.tv_sec += (time_t)(wait_ms / 1000);
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int r = 0;
    while (!sampler->stopping && !sampler->hurry && r != ETIMEDOUT) {
        r = pthread_cond_timedwait(&sampler->change, &sampler->lock, &until);
    }
    sampler->hurry = false;
    bool go_on = !sampler->stopping;
    pthread_mutex_unlock(&sampler->lock);
    return go_on;
}

static void *run(void *context) {
    struct sampler *sampler = context;
    do {
        pthread_mutex_lock(&sampler->lock);
        bool skip = sampler->pending || sampler->stopping;
        sampler->pending = true;
        pthread_mutex_unlock(&sampler->lock);
        if (!skip) {
            struct round *made = read_all(sampler);
            sampler->posted = made; /* the loop looks at it after the post, or the join */
            acre_loop_post(sampler->options.loop, deliver, made);
        }
    } while (wait_turn(sampler));
    return NULL;
}

int sampler_start(const struct sampler_options *options, struct sampler **ret_sampler,
                  struct acre_error *err) {
    struct sampler *sampler = acre_calloc(1, sizeof(*sampler));
    uint32_t count = acre_devices_count(options->devices);
    sampler->options = *options;
    sampler->clock = acre_clock_real();
    sampler->readings = acre_calloc(count + 1U, sizeof(*sampler->readings));
    sampler->xid_events = acre_calloc(count + 1U, sizeof(*sampler->xid_events));
    pthread_mutex_init(&sampler->lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sampler->change, &attributes);
    pthread_condattr_destroy(&attributes);
    int r = acre_thread_start(&sampler->thread, "acre-sampler", run, sampler);
    if (r != 0) {
        free(sampler->readings);
        free(sampler->xid_events);
        free(sampler);
        return acre_fail_errno(err, r, "a thread to read GPUs");
    }
    *ret_sampler = sampler;
    return 0;
}

void sampler_stop(struct sampler *sampler) {
    if (sampler == NULL) {
        return;
    }
    pthread_mutex_lock(&sampler->lock);
    sampler->stopping = true;
    pthread_cond_signal(&sampler->change);
    pthread_mutex_unlock(&sampler->lock);
    pthread_join(sampler->thread, NULL);
    if (sampler->posted != NULL) {
        acre_loop_unpost(sampler->options.loop, sampler->posted);
        round_destroy(sampler->posted);
    }
    for (uint32_t i = 0; i < acre_devices_count(sampler->options.devices); i++) {
        acre_device_reading_finish(&sampler->readings[i]);
    }
    acre_devices_close(sampler->options.devices);
    pthread_cond_destroy(&sampler->change);
    pthread_mutex_destroy(&sampler->lock);
    free(sampler->options.map);
    free(sampler->readings);
    free(sampler->xid_events);
    free(sampler);
}

void sampler_set_busy(struct sampler *sampler, bool busy) {
    if (sampler == NULL) {
        return;
    }
    pthread_mutex_lock(&sampler->lock);
    sampler->hurry = sampler->hurry || (busy && !sampler->busy);
    sampler->busy = busy;
    pthread_cond_signal(&sampler->change);
    pthread_mutex_unlock(&sampler->lock);
}
