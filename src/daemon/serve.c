/* serve.c - wiring only: settings, nodes, store and scheduler (the desk), engine, API, HTTP.
 *
 * Start: the store is opened and read before anything listens, so that the first answer already
 * reflects everything ever acknowledged. Stop (SIGTERM): no new requests are accepted, pending
 * answers are sent, decisions are committed; jobs keep running, and the next start finds them
 * again. A second SIGTERM stops immediately. SIGHUP reads the settings again. */
#include "daemon/serve.h"

#include "api/api.h"
#include "core/file.h"
#include "core/log.h"
#include "daemon/directory.h"
#include "daemon/notify.h"
#include "daemon/overseer.h"
#include "desk/commands.h"
#include "device/device.h"
#include "engine/engines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    DRAIN_MS = 10000,
    IDLE_SAMPLE_MS = 30000,
    PEM_MAX_BYTES = 1 << 20,
    LIMIT_KEYS = 4096, /* users, addresses */
    BODY_MAX_BYTES = 1 << 20,
    ANSWER_TIMEOUT_MS = 30000,
    REQUEST_TIMEOUT_MS = 10000,
    IDLE_TIMEOUT_MS = 60000,
    STRANGER_TIMEOUT_MS = 5000,
    /* Clients without a token can ask for health, version and the description of the API alone:
     * this is more than monitoring needs, and too little to slow others down. */
    STRANGERS_A_MINUTE = 6000,
    STRANGERS_BURST = 600,
    FDS_OTHERS = 4096, /* descriptors for engine (one a run that it adopted), store and devices */
    FDS_A_CONNECTION = 2, /* itself, and the log that it follows */
};
#define OOM_SCORE       "-900" /* of -1000 to 1000; -1000 would exempt it whatever it uses itself */
#define DEFAULT_ADDRESS "127.0.0.1:10000"

struct serve {
    const struct acre_settings_given *given;
    struct settings settings;
    struct acre_clock clock;
    struct acre_loop *loop;
    struct acre_policy policy; /* of the file, if there is one; the desk borrows it */
    struct acre_desk *desk;
    struct acre_auth *auth;
    struct acre_sse *sse;
    struct acre_api *api;
    struct acre_http *http;
    struct overseer *overseer;
    struct sampler *sampler;
    char state[PATH_MAX], socket[PATH_MAX], logs[PATH_MAX + 8], url[PATH_MAX + 32];
    char token_path[PATH_MAX + 16]; /* where the first start leaves the admin's */
    uint32_t connections;           /* at once: as set, or as many as there are descriptors for */
    bool stopping;
};

static void log_plain(enum acre_log_level level, const char *message) {
    acre_log_write(level, message, NULL, 0);
}

static void log_error(const char *message, const struct acre_error *err) {
    acre_log(ACRE_LOG_ERROR, message, {"code", acre_error_name(err->code)}, {"error", err->text});
}

/* --- places --------------------------------------------------------------------------------- */

static const char *home(void) {
    const char *path = getenv("HOME");
    const struct passwd *entry = path == NULL ? getpwuid(geteuid()) : NULL;
    return path != NULL ? path : entry != NULL ? entry->pw_dir : "/";
}

/* When the machine runs out of memory, the kernel is to end jobs, not who keeps account of them.
 * Supervisors inherit this; jobs give it up (shim.c). */
static int protect(struct serve *serve, struct acre_error *err) {
    (void)serve, (void)err;
    int fd = geteuid() == 0 ? open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && write(fd, OOM_SCORE, strlen(OOM_SCORE)) < 0) {
        log_plain(ACRE_LOG_INFO, "the kernel's out-of-memory killer may kill this daemon: it "
                                 "cannot lower its oom_score_adj");
    }
    if (fd >= 0) {
        close(fd);
    }
    return 0;
}

/* What store and engine keep there. */
static int open_state(const struct serve *serve, struct acre_error *err) {
    static const struct directory_entry entries[] = {
        {"acre.db", ACRE_ENTRY_FILE},         {"acre.db-wal", ACRE_ENTRY_FILE},
        {"acre.db-shm", ACRE_ENTRY_FILE},     {"acre.db-lock", ACRE_ENTRY_FILE},
        {"acre.db-journal", ACRE_ENTRY_FILE}, {"engine.lock", ACRE_ENTRY_FILE},
        {"logs", ACRE_ENTRY_DIRECTORY},       {"runs", ACRE_ENTRY_DIRECTORY},
        {"facts", ACRE_ENTRY_FIFO},
    };
    struct directory place = {.what = "state directory",
                              .option = "--state",
                              .path = serve->state,
                              .mode = 0700,
                              .is_ours = true,
                              .known_by = "acre.db"};
    int fd = -1;
    int r = directory_open(&place, &fd, err);
    if (r == 0) {
        r = directory_check(&place, fd, entries, ACRE_COUNT(entries), err);
        close(fd);
    }
    return r;
}

static int make_run_directory(struct acre_error *err) {
    struct directory place = {
        .what = "socket directory", .option = "--socket", .path = "/run/acre", .mode = 0755};
    int fd = -1;
    int r = directory_open(&place, &fd, err);
    if (r == 0) {
        close(fd);
    }
    return r;
}

static int find_places(struct serve *serve, struct acre_error *err) {
    bool root = geteuid() == 0;
    if (serve->settings.state != NULL) {
        snprintf(serve->state, sizeof(serve->state), "%s", serve->settings.state);
    } else if (root) {
        snprintf(serve->state, sizeof(serve->state), "/var/lib/acre");
    } else {
        snprintf(serve->state, sizeof(serve->state), "%s/.local/state/acre", home());
    }
    int r = open_state(serve, err);
    if (r < 0) {
        return r;
    }
    if (serve->settings.socket != NULL) {
        snprintf(serve->socket, sizeof(serve->socket), "%s", serve->settings.socket);
    } else if (root && serve->settings.state == NULL) {
        r = make_run_directory(err);
        snprintf(serve->socket, sizeof(serve->socket), "/run/acre/acre.sock");
    } else {
        snprintf(serve->socket, sizeof(serve->socket), "%.*s/acre.sock", PATH_MAX - 16,
                 serve->state);
    }
    snprintf(serve->logs, sizeof(serve->logs), "%s/logs", serve->state);
    snprintf(serve->url, sizeof(serve->url), "sqlite:%s/acre.db", serve->state);
    snprintf(serve->token_path, sizeof(serve->token_path), "%s/admin-token", serve->state);
    return r;
}

/* --- parts ---------------------------------------------------------------------------------- */

static int read_policy(struct serve *serve, struct acre_error *err) {
    if (serve->settings.policy == NULL) {
        return 0;
    }
    struct acre_buf text;
    acre_buf_init(&text, ACRE_POLICY_BYTES_MAX);
    int r = acre_file_read(serve->settings.policy, ACRE_POLICY_BYTES_MAX, &text, err);
    if (r == 0) {
        r = acre_policy_load(serve->settings.policy, (struct acre_str){text.data, text.length},
                             acre_policy_default(), &serve->policy, err);
    }
    acre_buf_finish(&text);
    return r;
}

static void on_event(void *context, const struct acre_desk_event *event) {
    struct serve *serve = context;
    acre_api_event(serve->api, event);
}

static void on_begin(void *context, struct acre_run run, const struct acre_run_device *devices,
                     uint32_t count) {
    struct serve *serve = context;
    overseer_begin(serve->overseer, run, devices, count);
}

static void on_end(void *context, struct acre_run run, struct acre_job_exit *exit) {
    struct serve *serve = context;
    overseer_end(serve->overseer, run, exit);
}

static void on_trouble(void *context, const char *what, const struct acre_error *err) {
    struct serve *serve = context;
    if (err != NULL) {
        log_error(what, err);
        notify_systemd("STATUS=read-only: the store cannot be written");
    } else {
        log_plain(ACRE_LOG_WARN, what);
        notify_systemd("STATUS=");
        struct acre_error again = {0};
        if (auth_load(serve->auth, acre_desk_store(serve->desk), &again) < 0) {
            log_error("cannot read the tokens", &again);
        }
    }
}

static int open_desk(struct serve *serve, struct acre_error *err) {
    struct acre_desk_options options = {
        .loop = serve->loop,
        .clock = &serve->clock,
        .store_url = serve->url,
        .logs_directory = serve->logs,
        .policy = serve->settings.policy != NULL ? &serve->policy : NULL,
        .sink = {.event = on_event,
                 .begin = on_begin,
                 .end = on_end,
                 .trouble = on_trouble,
                 .context = serve},
    };
    serve->overseer = overseer_create();
    return acre_desk_create(&options, &serve->desk, err);
}

static struct acre_limit_options request_limit(const struct settings *settings) {
    uint64_t per_minute = settings->rate * 60;
    return (struct acre_limit_options){.keys = LIMIT_KEYS,
                                       .burst = (uint32_t)settings->rate,
                                       .per_minute =
                                           (uint32_t)ACRE_MIN(per_minute, UINT64_C(100000000))};
}

static struct acre_limit_options guess_limit(const struct settings *settings) {
    return (struct acre_limit_options){.keys = LIMIT_KEYS,
                                       .burst = (uint32_t)settings->failures,
                                       .per_minute = (uint32_t)settings->failures};
}

static struct acre_api_limits limits_of(const struct settings *settings) {
    return (struct acre_api_limits){.requests = request_limit(settings),
                                    .strangers = {.keys = LIMIT_KEYS,
                                                  .burst = STRANGERS_BURST,
                                                  .per_minute = STRANGERS_A_MINUTE},
                                    .guesses = guess_limit(settings)};
}

static int open_api(struct serve *serve, struct acre_error *err) {
    struct acre_auth_options auth = {.clock = &serve->clock,
                                     .operators = serve->settings.operators,
                                     .admins = serve->settings.admins,
                                     .project = serve->settings.project,
                                     .min_uid = (uint32_t)serve->settings.min_uid};
    serve->auth = auth_create(&auth);
    int r = auth_load(serve->auth, acre_desk_store(serve->desk), err);
    if (r < 0) {
        return r;
    }
    /* Ids of events go on from the time: those from before a restart are known to be older. */
    struct acre_sse_options sse = {.loop = serve->loop,
                                   .first_id = acre_clock_wall_ms(&serve->clock) * 1000};
    serve->sse = acre_sse_create(&sse);
    struct acre_api_options api = {.loop = serve->loop,
                                   .clock = &serve->clock,
                                   .store_url = serve->url,
                                   .desk = serve->desk,
                                   .auth = serve->auth,
                                   .sse = serve->sse,
                                   .logs_directory = serve->logs,
                                   .limits = limits_of(&serve->settings)};
    serve->api = acre_api_create(&api);
    return 0;
}

/* Daemons on one machine must not take each other's runs for strays: each has a group of its own,
 * and keeps it over restarts. */
static void name_group(const struct serve *serve, char *name, size_t size) {
    char real[PATH_MAX];
    const char *path = realpath(serve->state, real) != NULL ? real : serve->state;
    if (serve->settings.state == NULL) {
        snprintf(name, size, "acre");
    } else {
        snprintf(name, size, "acre-%016llx",
                 (unsigned long long)acre_hash_bytes(path, strlen(path)));
    }
}

/* What the engines can contain and what they cannot. */
static void log_engines(const struct serve *serve) {
    struct acre_buf text;
    acre_buf_init(&text, PEM_MAX_BYTES);
    acre_desk_describe_engines(serve->desk, &text);
    struct acre_split lines = acre_split_begin((struct acre_str){text.data, text.length}, '\n');
    struct acre_str line;
    while (acre_split_next(&lines, &line)) {
        char shown[256];
        if (line.length > 0) {
            acre_str_show(line, shown, sizeof(shown));
            acre_log(ACRE_LOG_DEBUG, "engine", {"says", shown});
        }
    }
    acre_buf_finish(&text);
}

/* Those that were named, or the first there is. */
static int open_engines(struct serve *serve, struct acre_error *err) {
    const struct settings *settings = &serve->settings;
    char group[32];
    name_group(serve, group, sizeof(group));
    if (settings->run_as != NULL && settings->run_as[0] != '\0') {
        acre_log(ACRE_LOG_WARN,
                 "all jobs share one account: users can read, change and end each other's jobs and "
                 "files",
                 {"run-as", settings->run_as});
    }
    struct acre_engine_options options = {.state_directory = serve->state,
                                          .group = group,
                                          .sim = (const char *const *)settings->sim.items,
                                          .sim_count = settings->sim.count,
                                          .run_as = settings->run_as,
                                          .min_uid = (uint32_t)settings->min_uid,
                                          .allow_root = settings->allow_root};
    int r = 0;
    for (uint32_t i = 0; i < ACRE_MAX(settings->engine.count, 1U) && r == 0; i++) {
        const struct acre_engine_driver *driver = acre_engines[0];
        if (settings->engine.count > 0) {
            r = acre_engine_find(settings->engine.items[i], &driver, &options.address, err);
            r = r < 0 ? acre_fail_in(err, r, "--engine") : 0;
        }
        if (r == 0) {
            r = acre_desk_add_engine(serve->desk, driver, &options, err);
        }
    }
    if (r == 0) {
        log_engines(serve);
        r = acre_desk_load(serve->desk, err);
    }
    return r;
}

/* Which of this machine's devices are in the inventory: those are read regularly. */
static uint32_t *map_devices(const struct serve *serve, const struct acre_devices *devices,
                             bool *ret_any) {
    const struct acre_inventory *inventory = acre_desk_inventory(serve->desk);
    uint32_t count = acre_devices_count(devices);
    uint32_t *map = acre_calloc(count + 1U, sizeof(*map));
    for (uint32_t i = 0; i < count; i++) {
        if (inventory_find_device(inventory, acre_devices_info(devices, i)->id, &map[i])) {
            *ret_any = true;
        } else {
            map[i] = UINT32_MAX;
        }
    }
    return map;
}

static int start_sampler(struct serve *serve, struct acre_error *err) {
    int r = 0;
    if (!inventory_is_simulated(acre_desk_inventory(serve->desk)) &&
        inventory_devices(acre_desk_inventory(serve->desk)) > 0) {
        struct acre_device_options where = {.telemetry_only = true};
        struct acre_devices *devices = acre_devices_open(&where);
        bool any = false;
        struct sampler_options options = {.loop = serve->loop,
                                          .devices = devices,
                                          .map = map_devices(serve, devices, &any),
                                          .busy_ms = serve->settings.sample,
                                          .idle_ms = IDLE_SAMPLE_MS,
                                          .deliver = overseer_round,
                                          .context = serve->overseer};
        r = any ? sampler_start(&options, &serve->sampler, err) : 0;
        if (serve->sampler == NULL) { /* else they are the sampler's now */
            acre_devices_close(devices);
            free(options.map);
        }
    }
    overseer_set(serve->overseer, serve->desk, serve->sampler);
    return r;
}

/* --- listening ------------------------------------------------------------------------------ */

static int read_pem(const char *path, struct acre_buf *text, struct acre_error *err) {
    acre_buf_init(text, PEM_MAX_BYTES);
    return path != NULL ? acre_file_read(path, PEM_MAX_BYTES, text, err) : 0;
}

/* Both texts are to be finished, whatever the answer. */
static int read_tls(const struct settings *settings, struct acre_buf *certificate,
                    struct acre_buf *key, struct acre_error *err) {
    int r = read_pem(settings->tls_cert, certificate, err);
    int k = read_pem(settings->tls_key, key, r == 0 ? err : NULL);
    return r == 0 ? k : r;
}

/* Raise the limit of open files to what connections may need, or to the hard limit; then there are
 * fewer connections. No further than needed: programs that the daemon starts inherit it, and some
 * close every descriptor up to it. (Jobs get a limit of their own.) */
static int find_descriptors(struct serve *serve, struct acre_error *err) {
    (void)err;
    struct rlimit limit = {0};
    uint64_t asked = serve->settings.connections;
    uint64_t want = asked * FDS_A_CONNECTION + FDS_OTHERS;
    serve->connections = (uint32_t)asked;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 0;
    }
    if (limit.rlim_cur < want) {
        struct rlimit raised = {ACRE_MIN((rlim_t)want, limit.rlim_max), limit.rlim_max};
        limit = setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised : limit;
    }
    uint64_t others = ACRE_MIN((uint64_t)FDS_OTHERS, limit.rlim_cur / 4);
    uint64_t room = (limit.rlim_cur - others) / FDS_A_CONNECTION;
    serve->connections = (uint32_t)ACRE_MIN(asked, room);
    char fds[24], connections[24], wished[24];
    snprintf(fds, sizeof(fds), "%llu", (unsigned long long)limit.rlim_cur);
    snprintf(connections, sizeof(connections), "%u", serve->connections);
    snprintf(wished, sizeof(wished), "%llu", (unsigned long long)asked);
    if (room < asked) {
        acre_log(ACRE_LOG_WARN, "fewer connections than requested: the open-file limit is too low",
                 {"connections", connections}, {"asked", wished}, {"open_files", fds});
    } else {
        acre_log(ACRE_LOG_INFO, "limits", {"connections", connections}, {"open_files", fds});
    }
    return 0;
}

static int listen_on(struct serve *serve, const char *address, struct acre_error *err) {
    struct acre_buf certificate;
    struct acre_buf key;
    int r = read_tls(&serve->settings, &certificate, &key, err);
    bool tls = serve->settings.tls_cert != NULL;
    struct acre_http_options options = {.loop = serve->loop,
                                        .unix_path = serve->socket,
                                        .address = address,
                                        .certificate_pem = tls ? certificate.data : NULL,
                                        .key_pem = tls ? key.data : NULL,
                                        .body_max = BODY_MAX_BYTES,
                                        .request_timeout_ms = REQUEST_TIMEOUT_MS,
                                        .answer_timeout_ms = ANSWER_TIMEOUT_MS,
                                        .idle_timeout_ms = IDLE_TIMEOUT_MS,
                                        .stranger_timeout_ms = STRANGER_TIMEOUT_MS,
                                        .connections_max = serve->connections,
                                        .peer_max = acre_api_peer_max,
                                        .knows_uid = acre_api_knows_uid,
                                        .handler = acre_api_handle,
                                        .context = serve->api};
    if (r == 0) {
        r = acre_http_start(&options, &serve->http, err);
    }
    acre_buf_finish(&certificate);
    acre_buf_finish(&key);
    return r;
}

/* A taken port stops the start: whoever has it would get the questions, and the tokens, that are
 * meant for us. */
static int start_listening(struct serve *serve, struct acre_error *err) {
    const char *asked = serve->settings.listen;
    const char *address = asked != NULL ? asked : DEFAULT_ADDRESS;
    bool none = serve->settings.no_tcp || strcmp(address, "none") == 0;
    int r = listen_on(serve, none ? NULL : address, err);
    if (r == ACRE_EEXISTS) {
        char text[ACRE_ERROR_TEXT_MAX];
        snprintf(text, sizeof(text), "%s", err->text);
        r = acre_fail(err, r,
                      "%s ('ss -lxtp' shows which); stop it, or choose another place with --socket "
                      "PATH or --listen ADDRESS; --no-tcp serves the socket only",
                      text);
    }
    if (r == 0) {
        char tcp[128] = "none";
        const char *colon = strrchr(address, ':');
        if (acre_http_port(serve->http) != 0 && colon != NULL) {
            snprintf(tcp, sizeof(tcp), "%.*s:%u", (int)ACRE_MIN(colon - address, 100), address,
                     acre_http_port(serve->http));
        }
        acre_log(ACRE_LOG_INFO, "serving", {"socket", serve->socket}, {"tcp", tcp},
                 {"state", serve->state});
        acre_api_set_http(serve->api, serve->http);
    }
    return r;
}

/* --- the first token ------------------------------------------------------------------------ */

/* Root and the daemon's own user need none on the socket: this one is for programs and for other
 * machines, so it waits in a file of ours instead of passing by on a screen or in a log. */
static int write_first_token(const struct serve *serve, const char *token, struct acre_error *err) {
    unlink(serve->token_path); /* whatever is there is from a start that was not recorded */
    int fd = open(serve->token_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return acre_fail_errno(err, errno, "cannot write the admin token: %s", serve->token_path);
    }
    bool wrote = dprintf(fd, "%s\n", token) > 0 && fsync(fd) == 0;
    int why = errno;
    close(fd);
    if (!wrote) {
        unlink(serve->token_path);
        return acre_fail_errno(err, why, "cannot write the admin token: %s", serve->token_path);
    }
    return 0;
}

static void on_first_token(void *context, int code, const struct acre_error *err) {
    struct serve *serve = context;
    if (code < 0) {
        unlink(serve->token_path);
        log_error("cannot record the admin token", err);
    } else {
        acre_log(ACRE_LOG_INFO, "admin token written", {"path", serve->token_path});
    }
}

static int make_first_token(struct serve *serve, struct acre_error *err) {
    struct acre_store_token row;
    char text[ACRE_TOKEN_TEXT_MAX];
    uint64_t now_ms = acre_clock_wall_ms(&serve->clock);
    const struct passwd *entry = getpwuid(geteuid());
    struct acre_token token = {.user = entry != NULL ? entry->pw_name : "admin",
                               .project = serve->settings.project,
                               .note = "made at the first start",
                               .role = ACRE_ROLE_ADMIN,
                               .created_ms = now_ms};
    if (auth_count(serve->auth) > 0) {
        return 0;
    }
    int r = auth_make(serve->auth, &token, &row, text, err);
    if (r == 0) {
        r = write_first_token(serve, text, err);
    }
    explicit_bzero(text, sizeof(text));
    if (r < 0) {
        return r;
    }
    struct acre_batch *batch = acre_batch_create();
    struct acre_store_audit audit = {.at_ms = now_ms,
                                     .actor = "acre",
                                     .origin = "",
                                     .action = "token created",
                                     .target = "token:1",
                                     .result = "ok",
                                     .detail = "the first start"};
    acre_batch_put_token(batch, &row);
    acre_batch_audit(batch, &audit);
    acre_store_commit(acre_desk_store(serve->desk), batch, on_first_token, serve);
    return 0;
}

/* --- signals -------------------------------------------------------------------------------- */

static void drained(void *context) {
    struct serve *serve = context;
    acre_loop_stop(serve->loop);
}

static void on_stop(void *context) {
    struct serve *serve = context;
    if (serve->stopping) {
        acre_loop_stop(serve->loop);
        return;
    }
    serve->stopping = true;
    acre_api_stop(serve->api);
    log_plain(ACRE_LOG_INFO, "stopping; jobs keep running");
    notify_systemd("STOPPING=1");
    acre_http_drain(serve->http, DRAIN_MS, drained, serve);
}

/* What can change without a restart; the rest waits for one. */
static void renew_tls(struct serve *serve) {
    if (serve->settings.tls_cert == NULL) {
        return;
    }
    struct acre_buf certificate;
    struct acre_buf key;
    struct acre_error err = {0};
    int r = read_tls(&serve->settings, &certificate, &key, &err);
    if (r == 0) {
        r = acre_http_renew_tls(serve->http, certificate.data, key.data, &err);
    }
    if (r < 0) {
        log_error("keeping the old certificate", &err);
    }
    acre_buf_finish(&certificate);
    acre_buf_finish(&key);
}

static void on_reload(void *context) {
    struct serve *serve = context;
    struct settings settings;
    struct acre_error err = {0};
    enum acre_log_level level;
    if (settings_read(serve->given, &settings, &err) < 0) {
        log_error("keeping the old settings", &err);
        return;
    }
    settings_finish(&serve->settings);
    serve->settings = settings;
    acre_log_level_parse(settings.log_level, &level);
    acre_log_set_level(level);
    struct acre_api_limits limits = limits_of(&settings);
    acre_api_set_limits(serve->api, &limits);
    auth_set_names(serve->auth, settings.operators, settings.admins, settings.project);
    renew_tls(serve);
    if (settings.policy != NULL) {
        if (acre_desk_writable(serve->desk, &err) < 0 || read_policy(serve, &err) < 0) {
            log_error("keeping the old policy", &err);
        } else {
            acre_desk_set_policy(serve->desk, &serve->policy, settings.policy);
        }
    }
    log_plain(ACRE_LOG_INFO, "settings read again");
}

static int watch_signals(struct serve *serve, struct acre_error *err) {
    static const struct {
        int number;
        acre_loop_function *function;
    } rows[] = {{SIGTERM, on_stop}, {SIGINT, on_stop}, {SIGHUP, on_reload}};
    int r = 0;
    for (size_t i = 0; i < ACRE_COUNT(rows) && r == 0; i++) {
        r = acre_loop_signal(serve->loop, rows[i].number, rows[i].function, serve, err);
    }
    return r;
}

/* --- all of it ------------------------------------------------------------------------------ */

typedef int step(struct serve *serve, struct acre_error *err);

static int start(struct serve *serve, struct acre_error *err) {
    static step *const steps[] = {protect,       find_places,      find_descriptors, read_policy,
                                  open_desk,     open_api,         open_engines,     start_sampler,
                                  watch_signals, make_first_token, start_listening};
    enum acre_log_level level;
    int r = settings_read(serve->given, &serve->settings, err);
    if (r < 0) {
        return r;
    }
    acre_log_level_parse(serve->settings.log_level, &level);
    acre_log_set_level(level);
    r = acre_loop_create(&serve->loop, err);
    for (size_t i = 0; i < ACRE_COUNT(steps) && r == 0; i++) {
        r = steps[i](serve, err);
    }
    if (r == 0) {
        acre_desk_start(serve->desk);
        notify_systemd("READY=1");
    }
    return r;
}

static void finish(struct serve *serve) {
    if (serve->api != NULL) {
        acre_audit_finish(serve->api);
    }
    acre_http_stop(serve->http);
    if (serve->api != NULL) {
        acre_api_sum_refusals(serve->api);
    }
    sampler_stop(serve->sampler);
    acre_desk_destroy(serve->desk);
    acre_api_destroy(serve->api);
    acre_sse_destroy(serve->sse);
    auth_destroy(serve->auth);
    overseer_destroy(serve->overseer);
    acre_loop_destroy(serve->loop);
    settings_finish(&serve->settings);
}

int acre_serve(const struct acre_settings_given *given) {
    struct serve *serve = acre_calloc(1, sizeof(*serve));
    struct acre_error err = {0};
    serve->given = given;
    serve->clock = acre_clock_real();
    int r = start(serve, &err);
    if (r == 0) {
        acre_loop_run(serve->loop);
        log_plain(ACRE_LOG_INFO, "stopped");
    } else {
        fprintf(stderr, "acre: %s\n", err.text);
    }
    finish(serve);
    free(serve);
    return r < 0 ? acre_error_exit(r) : 0;
}
