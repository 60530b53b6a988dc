/* runner.c - the life of a runner: started by a caller, ends with it.
 *
 * The first thread only watches: the socket, and a pidfd of the parent (the parent's children may
 * have inherited the socket, and PR_SET_PDEATHSIG is about the thread that started us). Other
 * threads do everything that takes time, opening the device first of all, so that a runner never
 * outlives its parent by more than the time it takes to die. If nothing is in progress it exits
 * normally, because tools in the process, such as compute-sanitizer, report their findings then. */
#include "compute/runner/runner.h"

#include "compute/runner/remote.h"
#include "core/cpus.h"
#include "core/futex.h"
#include "core/spin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    BYE_LIMIT_MS = 3000,  /* until nothing is under way; callers are less patient */
    GONE_LIMIT_MS = 1000, /* the same without a caller */
    CLEAN_LIMIT_S = 600,  /* from there to the end */
    PROCESSORS_FEW = 3,   /* where spinning takes a processor from those that work */
};

_Noreturn void runner_end(struct runner *runner, int code, const char *text) {
    struct wire_shared *shared = runner->shared;
    uint32_t none = WIRE_END_NONE;
    if (!atomic_compare_exchange_strong(&shared->end_state, &none, WIRE_END_WRITING)) {
        for (;;) { /* another thread is at it */
            pause();
        }
    }
    shared->end.code = code;
    snprintf(shared->end.text, sizeof(shared->end.text), "%s", text);
    atomic_store(&shared->end_state, WIRE_END_TOLD); /* pairs with explain, remote_life.c */
    _exit(RUNNER_EXIT_TOLD);
}

void runner_look(struct runner *runner) {
    struct acre_error err = {0};
    int r = runner->table->check(runner->seat, &err);
    if (r < 0) {
        runner_end(runner, r, err.text);
    }
}

/* --- notes ---------------------------------------------------------------------------------- */

/* Lock held: so that a descriptor is either in the socket or known. False: the caller is gone, or
 * says that we should end. */
static bool take_note(struct runner *runner, bool *ret_bye) {
    struct wire_note note;
    int fds[WIRE_FDS];
    uint32_t count;
    int r = wire_receive(runner->socket, &note, MSG_DONTWAIT, fds, &count);
    if (r == -EAGAIN) {
        *ret_bye = false;
        return true;
    }
    if (r == 0 && note.kind == WIRE_NOTE_EVENTFD && count == 1 && note.number != 0 &&
        acre_map_get(&runner->eventfds, note.number) == ACRE_MAP_NONE) {
        acre_map_put(&runner->eventfds, note.number, (uint32_t)fds[0]);
        *ret_bye = false;
        return true;
    }
    *ret_bye = r == 0 && note.kind == WIRE_NOTE_BYE;
    return false;
}

int runner_eventfd(struct runner *runner, uint64_t number) {
    bool bye;
    pthread_mutex_lock(&runner->lock);
    uint32_t fd = acre_map_get(&runner->eventfds, number);
    for (int i = 0; i < 2 && fd == ACRE_MAP_NONE && take_note(runner, &bye); i++) {
        fd = acre_map_get(&runner->eventfds, number);
    }
    pthread_mutex_unlock(&runner->lock);
    return fd == ACRE_MAP_NONE ? -1 : (int)fd;
}

void runner_forget(struct runner *runner, uint64_t number) {
    pthread_mutex_lock(&runner->lock);
    uint32_t fd = acre_map_get(&runner->eventfds, number);
    if (fd != ACRE_MAP_NONE) {
        acre_map_remove(&runner->eventfds, number);
        close((int)fd);
    }
    pthread_mutex_unlock(&runner->lock);
}

/* --- beginning ------------------------------------------------------------------------------ */

static uint64_t abilities(const struct backend *table) {
    return (table->wait != NULL ? WIRE_CAN_WAIT : 0) |
           (table->compile != NULL ? WIRE_CAN_COMPILE : 0) |
           (table->graph_create != NULL ? WIRE_CAN_GRAPH : 0) |
           (table->profile != NULL ? WIRE_CAN_PROFILE : 0) |
           (table->transfer != NULL ? WIRE_CAN_TRANSFER : 0) |
           (table->region_export != NULL ? WIRE_CAN_EXPORT : 0) |
           (table->stream_own != NULL ? WIRE_CAN_OWN : 0);
}

static int open_seat(struct runner *runner, struct acre_error *err) {
    int r = runner->table->open(&runner->self, err);
    if (r < 0) {
        return r;
    }
    uint32_t count = runner->table->count(runner->self);
    if (runner->device >= count) {
        return acre_fail(err, ACRE_ENOTFOUND, "no device %u of %s; it has %u", runner->device,
                         runner->table->name, count);
    }
    return runner->table->seat_open(runner->self, runner->device, &runner->seat, err);
}

static int start_slots(struct runner *runner, struct acre_error *err) {
    for (uint32_t i = 0; i < WIRE_SLOTS; i++) {
        struct runner_slot *slot = acre_calloc(1, sizeof(*slot));
        *slot = (struct runner_slot){.runner = runner, .index = i};
        int error = pthread_create(&runner->slots[i], NULL, runner_slot_main, slot);
        if (error != 0) {
            free(slot);
            return acre_fail_errno(err, error, "cannot start a thread of the runner");
        }
        runner->slot_count++;
    }
    return 0;
}

static void *work(void *argument) {
    struct runner *runner = argument;
    struct wire_note ready = {.magic = WIRE_MAGIC, .kind = WIRE_NOTE_READY};
    int r = open_seat(runner, &ready.error);
    r = r == 0 ? start_slots(runner, &ready.error) : r;
    ready.error.code = r;
    ready.number = abilities(runner->table);
    wire_send(runner->socket, &ready, NULL, 0); /* gone: the first thread sees it */
    return r == 0 ? runner_queue_main(runner) : NULL;
}

static uint64_t spin_limit_ns(void) {
    uint32_t count = acre_cpu_count();
    return count == 1 ? 0 : count < PROCESSORS_FEW ? ACRE_SPIN_WORK_NS : ACRE_SPIN_QUEUE_NS;
}

/* Map what came with the greeting. */
static int attach(struct runner *runner, const int fds[WIRE_FDS], uint32_t count) {
    struct stat facts;
    if (count != WIRE_FDS || fstat(fds[0], &facts) < 0 ||
        (uint64_t)facts.st_size < sizeof(struct wire_shared)) {
        return -EPROTO;
    }
    runner->shared = wire_map(fds[0], 0, sizeof(struct wire_shared));
    if (runner->shared == MAP_FAILED || runner->shared->magic != WIRE_MAGIC) {
        return -EPROTO;
    }
    close(fds[0]);
    runner->host_fd = fds[1];
    runner->room_fd = fds[2];
    memcpy(runner->answer_fds, fds + 3, sizeof(runner->answer_fds));
    return 0;
}

static int greet(struct runner *runner, const struct backend *const *tables, size_t count,
                 int *ret_parent) {
    struct wire_note hello;
    int fds[WIRE_FDS];
    uint32_t fd_count;
    int r = wire_receive(runner->socket, &hello, 0, fds, &fd_count);
    if (r < 0 || hello.kind != WIRE_NOTE_HELLO) {
        return -EPROTO;
    }
    /* Opened, then compared: a parent that is gone by now is not our parent any more. */
    int parent = (int)syscall(SYS_pidfd_open, (pid_t)hello.number, 0);
    if (parent < 0 || getppid() != (pid_t)hello.number) {
        return -ESRCH;
    }
    *ret_parent = parent;
    runner->device = hello.device;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tables[i]->name, hello.backend) == 0) {
            runner->table = tables[i];
        }
    }
    if (runner->table == NULL) {
        struct wire_note ready = {.magic = WIRE_MAGIC, .kind = WIRE_NOTE_READY};
        acre_fail(&ready.error, ACRE_EUNSUPPORTED, "this runner has no back end '%s'",
                  hello.backend);
        wire_send(runner->socket, &ready, NULL, 0);
        return -EPROTO;
    }
    return attach(runner, fds, fd_count);
}

/* --- ending --------------------------------------------------------------------------------- */

static void die_after(int ms) {
    struct itimerval timer = {.it_value = {ms / 1000, ms % 1000 * 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void finish(struct runner *runner, bool is_alone) {
    die_after(is_alone ? GONE_LIMIT_MS : BYE_LIMIT_MS); /* in a kernel that never ends, perhaps */
    atomic_store(&runner->stops, true);
    atomic_store(&runner->shared->queue_sleeps, 0); /* or it sees `stops` before it sleeps */
    acre_futex_wake(&runner->shared->queue_sleeps, 1, ACRE_FUTEX_SHARED);
    pthread_mutex_lock(&runner->tail_lock);
    pthread_cond_broadcast(&runner->tail_moved);
    pthread_mutex_unlock(&runner->tail_lock);
    pthread_join(runner->queue, NULL);
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        atomic_store(&runner->shared->slots[i].state, WIRE_SLOT_CLOSED); /* likewise */
        acre_futex_wake(&runner->shared->slots[i].state, 1, ACRE_FUTEX_SHARED);
        pthread_join(runner->slots[i], NULL);
    }
    if (runner_is_idle(runner)) {
        struct wire_note bye = {.magic = WIRE_MAGIC, .kind = WIRE_NOTE_BYE};
        wire_send(runner->socket, &bye, NULL, 0);
        die_after(CLEAN_LIMIT_S * 1000);
    } else if (is_alone) {
        _exit(0);
    }
    if (runner->seat != NULL) {
        runner->table->seat_close(runner->seat);
    }
    if (runner->self != NULL) {
        runner->table->close(runner->self);
    }
    while (runner->regions != NULL) {
        struct runner_region *region = runner->regions;
        runner->regions = region->next;
        free(region);
    }
    acre_map_finish(&runner->eventfds);
}

/* Until the caller says good-bye; false: it is gone. */
static bool watch(struct runner *runner, int parent) {
    struct pollfd fds[] = {{.fd = runner->socket, .events = POLLIN},
                           {.fd = parent, .events = POLLIN}};
    for (bool bye = false; !bye;) {
        if (poll(fds, ACRE_COUNT(fds), -1) < 0) {
            continue;
        }
        if (fds[1].revents != 0) {
            return false;
        }
        pthread_mutex_lock(&runner->lock);
        bool goes_on = take_note(runner, &bye);
        pthread_mutex_unlock(&runner->lock);
        if (!goes_on && !bye) {
            return false;
        }
    }
    return true;
}

int runner_run(const struct backend *const *tables, size_t count) {
    struct rlimit files;
    int parent;
    prctl(PR_SET_NAME, "acre-runner");
    fcntl(WIRE_SOCKET_FD, F_SETFD, FD_CLOEXEC); /* compilers are started from here */
    struct runner *runner = calloc(1, sizeof(*runner));
    if (runner == NULL) {
        return 1;
    }
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    runner->socket = WIRE_SOCKET_FD;
    runner->spin_max_ns = spin_limit_ns();
    runner->spin_busy_ns = runner->spin_max_ns == ACRE_SPIN_QUEUE_NS
                               ? (uint64_t)ACRE_SPIN_QUEUE_BUSY_NS
                               : runner->spin_max_ns;
    pthread_mutex_init(&runner->lock, NULL);
    pthread_mutex_init(&runner->said_lock, NULL);
    pthread_mutex_init(&runner->tail_lock, NULL);
    pthread_cond_init(&runner->tail_moved, NULL);
    int r = greet(runner, tables, count, &parent);
    if (r == 0) {
        r = -pthread_create(&runner->queue, NULL, work, runner);
    }
    if (r == 0) {
        finish(runner, !watch(runner, parent));
    }
    free(runner);
    return r == 0 ? 0 : 1;
}
