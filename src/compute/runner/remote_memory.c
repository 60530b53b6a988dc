/* remote_memory.c - host memory that a seat shares with its runners, and the eventfds it sends.
 *
 * All mappings are parts of one sparse file that only grows: a part is used once, and its pages are
 * freed when it is unmapped. 2^62 bytes of offsets never run out. */
#include "compute/runner/remote_inner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LARGE_BYTES = 2 << 20, /* a large page: such maps start on one, in file and memory */
    EVENTFDS_MIN = 64,
};

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

int remote_map_host(void *seat, uint64_t bytes, void **ret_host, struct acre_error *err) {
    struct remote *remote = seat;
    struct remote_map *map = calloc(1, sizeof(*map));
    if (map == NULL || bytes == 0 || bytes > UINT64_C(1) << 50) {
        free(map);
        return acre_fail(err, ACRE_ENOMEM, "%llu bytes of host memory", (unsigned long long)bytes);
    }
    uint64_t unit = bytes >= LARGE_BYTES ? LARGE_BYTES : (uint64_t)sysconf(_SC_PAGESIZE);
    pthread_mutex_lock(&remote->lock);
    uint64_t offset = round_up(remote->host_bytes, unit);
    uint64_t end = offset + round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE));
    void *host = MAP_FAILED;
    if (ftruncate(remote->host_fd, (off_t)end) == 0) {
        host = wire_map(remote->host_fd, offset, bytes);
    }
    int error = errno;
    if (host != MAP_FAILED) {
        *map = (struct remote_map){
            .next = remote->maps, .host = host, .bytes = bytes, .offset = offset};
        remote->maps = map;
        remote->host_bytes = end;
    }
    pthread_mutex_unlock(&remote->lock);
    if (host == MAP_FAILED) {
        free(map);
        return acre_fail_errno(err, error, "%llu bytes of host memory", (unsigned long long)bytes);
    }
    *ret_host = host;
    return 0;
}

void remote_unmap(void *seat, void *host, uint64_t bytes) {
    struct remote *remote = seat;
    pthread_mutex_lock(&remote->lock);
    struct remote_map **link = &remote->maps;
    while (*link != NULL && (*link)->host != host) {
        link = &(*link)->next;
    }
    struct remote_map *map = *link;
    ACRE_ASSERT(map != NULL && map->bytes == bytes);
    *link = map->next;
    pthread_mutex_unlock(&remote->lock);
    munmap(host, bytes);
    fallocate(remote->host_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)map->offset,
              (off_t)round_up(bytes, (uint64_t)sysconf(_SC_PAGESIZE)));
    free(map);
}

int remote_find(struct remote *remote, const void *host, uint64_t bytes, uint64_t *ret_offset,
                struct acre_error *err) {
    const uint8_t *at = host;
    bool is_found = false;
    pthread_mutex_lock(&remote->lock);
    for (const struct remote_map *map = remote->maps; map != NULL && !is_found; map = map->next) {
        is_found = at >= map->host && bytes <= map->bytes &&
                   (uint64_t)(at - map->host) <= map->bytes - bytes;
        if (is_found) {
            *ret_offset = map->offset + (uint64_t)(at - map->host);
        }
    }
    pthread_mutex_unlock(&remote->lock);
    return is_found
               ? 0
               : acre_fail(err, ACRE_EINVALID, "the host memory is not shared with the runner");
}

/* --- eventfds ------------------------------------------------------------------------------- */

void remote_forget_eventfds(struct remote *remote) {
    free(remote->eventfds);
    remote->eventfds = NULL;
    remote->eventfd_room = 0;
}

uint64_t remote_take_eventfd(struct remote *remote, int fd) {
    if ((uint32_t)fd >= remote->eventfd_room) {
        return 0;
    }
    uint64_t number = remote->eventfds[fd];
    remote->eventfds[fd] = 0;
    return number;
}

static int make_room(struct remote *remote, int fd, struct acre_error *err) {
    uint32_t room = ACRE_MAX(2 * remote->eventfd_room, (uint32_t)EVENTFDS_MIN);
    if (fd < 0) {
        return acre_fail(err, ACRE_EINVALID, "eventfd %d", fd);
    }
    if ((uint32_t)fd < remote->eventfd_room) {
        return 0;
    }
    room = ACRE_MAX(room, (uint32_t)fd + 1);
    uint64_t *eventfds = realloc(remote->eventfds, room * sizeof(*eventfds));
    if (eventfds == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "eventfd %d", fd);
    }
    memset(eventfds + remote->eventfd_room, 0, (room - remote->eventfd_room) * sizeof(*eventfds));
    remote->eventfds = eventfds;
    remote->eventfd_room = room;
    return 0;
}

int remote_send_eventfd(struct remote *remote, int fd, uint64_t *ret_number,
                        struct acre_error *err) {
    int r = make_room(remote, fd, err);
    if (r < 0) {
        return r;
    }
    if (remote->eventfds[fd] == 0) {
        struct wire_note note = {
            .magic = WIRE_MAGIC, .kind = WIRE_NOTE_EVENTFD, .number = remote->eventfd_number + 1};
        r = wire_send(remote->socket, &note, &fd, 1);
        if (r < 0) {
            return r == -EPIPE || r == -ECONNRESET
                       ? acre_fail(err, ACRE_EUNAVAILABLE, "the runner has ended")
                       : acre_fail_errno(err, -r, "eventfd %d", fd);
        }
        remote->eventfds[fd] = ++remote->eventfd_number;
    }
    *ret_number = remote->eventfds[fd];
    return 0;
}
