/* world.c - keeps runs and messages in plain arrays: a simulation has a few dozen of each. */
#include "sim/world.h"

#include <stdlib.h>

void world_finish(struct fault_world *world) {
    free(world->runs);
    free(world->messages);
    *world = (struct fault_world){0};
}

struct world_run *world_find(struct fault_world *world, uint64_t job, uint32_t attempt) {
    for (uint32_t i = 0; i < world->run_count; i++) {
        if (world->runs[i].job == job && world->runs[i].attempt == attempt) {
            return &world->runs[i];
        }
    }
    return NULL;
}

void world_tell(struct fault_world *world, const struct world_message *message) {
    world->messages = acre_grow(world->messages, world->message_count, &world->message_capacity,
                                sizeof(*world->messages));
    world->messages[world->message_count++] = *message;
}

static void tell_of(struct fault_world *world, const struct world_run *run, bool exited) {
    world_tell(world,
               &(struct world_message){
                   .exited = exited, .job = run->job, .attempt = run->attempt, .exit = run->exit});
}

void world_start(struct fault_world *world, const struct world_run *run) {
    struct world_run *known = world_find(world, run->job, run->attempt);
    if (known != NULL) {
        world_ask(world, run->job, run->attempt);
        return;
    }
    world->runs =
        acre_grow(world->runs, world->run_count, &world->run_capacity, sizeof(*world->runs));
    world->runs[world->run_count] = *run;
    world->runs[world->run_count].alive = true;
    tell_of(world, &world->runs[world->run_count++], false);
}

static void end_run(struct fault_world *world, struct world_run *run) {
    run->alive = false;
    tell_of(world, run, true);
}

void world_move(struct fault_world *world, uint64_t now_ms) {
    for (uint32_t i = 0; i < world->run_count; i++) {
        if (world->runs[i].alive && world->runs[i].end_ms <= now_ms) {
            end_run(world, &world->runs[i]);
        }
    }
}

void world_kill(struct fault_world *world, struct world_run *run, int signal) {
    if (run->alive) {
        run->exit.kind = ACRE_EXIT_SIGNAL;
        run->exit.code = signal;
        end_run(world, run);
    }
}

void world_lose_node(struct fault_world *world, uint32_t node) {
    for (uint32_t i = 0; i < world->run_count; i++) {
        struct world_run *run = &world->runs[i];
        bool there = false;
        for (uint32_t p = 0; p < run->part_count; p++) {
            there |= run->parts[p].node == node;
        }
        if (run->alive && there) {
            run->exit.kind = ACRE_EXIT_LOST;
            end_run(world, run);
        }
    }
}

void world_ask(struct fault_world *world, uint64_t job, uint32_t attempt) {
    const struct world_run *run = world_find(world, job, attempt);
    if (run != NULL) {
        tell_of(world, run, !run->alive);
        return;
    }
    struct world_message lost = {
        .exited = true,
        .job = job,
        .attempt = attempt,
        .exit = {.kind = ACRE_EXIT_LOST, .peak_gpu_mib = ACRE_UNKNOWN, .gpu_use_milli = UINT32_MAX},
    };
    world_tell(world, &lost);
}

bool world_take(struct fault_world *world, struct acre_rand *rand,
                struct world_message *ret_message) {
    if (world->message_count == 0) {
        return false;
    }
    uint32_t at = (uint32_t)acre_rand_below(rand, world->message_count);
    *ret_message = world->messages[at];
    world->messages[at] = world->messages[--world->message_count];
    return true;
}

int world_check(const struct fault_world *world, uint32_t devices, struct acre_error *err) {
    uint32_t *used = acre_calloc(ACRE_MAX(devices, 1U), sizeof(*used));
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < world->run_count; i++) {
        const struct world_run *run = &world->runs[i];
        for (uint32_t j = 0; r == 0 && run->alive && j < i; j++) {
            if (world->runs[j].alive && world->runs[j].job == run->job) {
                r = acre_fail(err, ACRE_EINTERNAL, "job %lu has two live runs, %u and %u",
                              (unsigned long)run->job, world->runs[j].attempt, run->attempt);
            }
        }
        for (uint32_t p = 0; r == 0 && run->alive && p < run->part_count; p++) {
            const struct acre_part *part = &run->parts[p];
            if (part->device != ACRE_DEVICE_NONE && (used[part->device] += part->milli) > 1000) {
                r = acre_fail(
                    err, ACRE_EINTERNAL,
                    "device %u is overcommitted: %u thousandths are in use, job %lu included",
                    part->device, used[part->device], (unsigned long)run->job);
            }
        }
    }
    free(used);
    return r;
}
