/* sim.c - the parser of simulated clusters: lines, words, two tables of attributes.
 *
 * One pass. A line's first word says what it is; then come its fixed words and its attributes in
 * pairs, looked up in a table that gives type, range and place. The current line is read into a
 * local struct and appended only if all of it is valid. */
#include "device/sim.h"

#include "core/file.h"
#include "core/names.h"
#include "core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 512 }; /* 32 labels of 8 bytes; a longer word is refused */

struct acre_sim_cluster {
    struct acre_names *node_names; /* id = position + 1 */
    struct acre_names *words;
    struct acre_sim_node *nodes;
    struct acre_sim_group *groups;
    struct acre_sim_label *labels;
    uint32_t node_count, node_capacity;
    uint32_t group_count, group_capacity;
    uint32_t label_count, label_capacity;
};

struct parser {
    const char *file;
    uint32_t line;
    struct acre_str rest; /* of the line */
    struct acre_sim_cluster *cluster;
    struct acre_error *err;
};

enum attribute_kind { COUNT, SIZE, CELSIUS, NAME, LABELS, STATE };

struct attribute {
    const char *word;
    enum attribute_kind kind;
    size_t offset; /* of a uint64_t (SIZE), uint32_t (COUNT), int32_t, const char * or bool */
    uint64_t max;
    uint32_t given; /* bit to set */
};

#define GROUP(member) offsetof(struct acre_sim_group, member)
static const struct attribute group_attributes[] = {
    {"memory", SIZE, GROUP(memory_mib), 0, 0},
    {"vendor", NAME, GROUP(vendor), 0, 0},
    {"island", COUNT, GROUP(island), ACRE_SIM_DEVICES_MAX, 0},
    {"used", SIZE, GROUP(used_mib), 0, 0},
    {"utilization", COUNT, GROUP(utilization_pct), 100, ACRE_SIM_UTILIZATION},
    {"temperature", CELSIUS, GROUP(temperature_c), 0, ACRE_SIM_TEMPERATURE},
    {"power", COUNT, GROUP(power_w), 100000, ACRE_SIM_POWER},
    {"power-limit", COUNT, GROUP(power_limit_w), 100000, ACRE_SIM_POWER_LIMIT},
    {"state", STATE, GROUP(lost), 0, 0},
};

/* A node's cpus are written as a count; they become milli-CPUs when the line is done. */
struct node_line {
    uint64_t ram_mib;
    uint32_t cpus;
    uint32_t label_count;
};
static const struct attribute node_attributes[] = {
    {"cpus", COUNT, offsetof(struct node_line, cpus), 1000000, 0},
    {"ram", SIZE, offsetof(struct node_line, ram_mib), 0, 0},
    {"labels", LABELS, offsetof(struct node_line, label_count), 0, 0},
};

static int fail(struct parser *p, int code, struct acre_str word, const char *accepted) {
    char shown[80];
    return acre_fail(p->err, code, "%s:%" PRIu32 ": '%s': %s", p->file, p->line,
                     acre_str_show(word, shown, sizeof(shown)), accepted);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cut the next word off; false at the end of the line. */
static bool next_word(struct parser *p, struct acre_str *ret_word) {
    struct acre_str *rest = &p->rest;
    while (rest->length > 0 && is_blank(rest->data[0])) {
        rest->data++;
        rest->length--;
    }
    size_t length = 0;
    while (length < rest->length && !is_blank(rest->data[length])) {
        length++;
    }
    *ret_word = (struct acre_str){rest->data, length};
    rest->data += length;
    rest->length -= length;
    return length > 0;
}

static const char *keep(struct parser *p, struct acre_str word) {
    return acre_names_text(p->cluster->words, acre_names_intern(p->cluster->words, word));
}

/* Room for one more of an array that doubles. */
static void *grow(void *items, uint32_t count, uint32_t *capacity, size_t size) {
    if (count < *capacity) {
        return items;
    }
    *capacity = ACRE_MAX(16U, *capacity * 2);
    return acre_realloc(items, *capacity, size);
}

static int take_label(struct parser *p, struct acre_str pair, uint32_t first) {
    struct acre_sim_cluster *cluster = p->cluster;
    const char *equals = pair.length > 0 ? memchr(pair.data, '=', pair.length) : NULL;
    size_t at = equals != NULL ? (size_t)(equals - pair.data) : 0;
    struct acre_str key = {pair.data, at};
    struct acre_str value = {pair.data + at + 1, equals != NULL ? pair.length - at - 1 : 0};
    if (equals == NULL || !acre_str_is_name(key, ACRE_SIM_NAME_MAX) ||
        !acre_str_is_name(value, ACRE_SIM_NAME_MAX)) {
        return fail(p, ACRE_EINVALID, pair,
                    "a label must be KEY=VALUE, each a name of at most 63 bytes");
    }
    for (uint32_t i = first; i < cluster->label_count; i++) {
        if (acre_str_is(key, cluster->labels[i].key)) {
            return fail(p, ACRE_EEXISTS, key, "duplicate label");
        }
    }
    if (cluster->label_count - first >= ACRE_SIM_LABELS_MAX) {
        return fail(p, ACRE_ELIMIT, pair, "a node has at most 32 labels");
    }
    cluster->labels = grow(cluster->labels, cluster->label_count, &cluster->label_capacity,
                           sizeof(*cluster->labels));
    cluster->labels[cluster->label_count++] = (struct acre_sim_label){keep(p, key), keep(p, value)};
    return 0;
}

static int take_labels(struct parser *p, struct acre_str word, uint32_t *ret_count) {
    uint32_t first = p->cluster->label_count;
    struct acre_split parts = acre_split_begin(word, ',');
    struct acre_str pair;
    while (acre_split_next(&parts, &pair)) {
        int r = take_label(p, pair, first);
        if (r < 0) {
            return r;
        }
    }
    *ret_count = p->cluster->label_count - first;
    return 0;
}

static int take_celsius(struct parser *p, struct acre_str word, int32_t *ret_celsius) {
    bool negative = word.length > 0 && word.data[0] == '-';
    char digits[8];
    uint64_t value = 0;
    struct acre_str number = {word.data + negative, word.length - negative};
    if (!acre_str_copy(digits, sizeof(digits), number) ||
        acre_parse_count("temperature", digits, 0, negative ? 50 : 150, &value, NULL) < 0) {
        return fail(p, ACRE_EINVALID, word, "a temperature must be a whole number from -50 to 150");
    }
    *ret_celsius = negative ? -(int32_t)value : (int32_t)value;
    return 0;
}

static int take_size(struct parser *p, const struct attribute *attribute, const char *text,
                     uint64_t *ret_mib) {
    if (strcmp(text, "0") == 0 && strcmp(attribute->word, "used") == 0) {
        *ret_mib = 0;
        return 0;
    }
    int r = acre_parse_mib(attribute->word, text, ret_mib, p->err);
    return r < 0 ? acre_fail_in(p->err, r, "%s:%" PRIu32, p->file, p->line) : 0;
}

static int take_count(struct parser *p, const struct attribute *attribute, const char *text,
                      uint32_t *ret_count) {
    uint64_t value = 0;
    uint64_t min = attribute->given != 0 ? 0 : 1; /* a load of 0 is fine, an island of 0 is not */
    int r = acre_parse_count(attribute->word, text, min, attribute->max, &value, p->err);
    if (r < 0) {
        return acre_fail_in(p->err, r, "%s:%" PRIu32, p->file, p->line);
    }
    *ret_count = (uint32_t)value;
    return 0;
}

static int take_value(struct parser *p, const struct attribute *attribute, struct acre_str word,
                      void *target) {
    char text[WORD_MAX];
    void *at = (char *)target + attribute->offset;
    if (!acre_str_copy(text, sizeof(text), word)) {
        return fail(p, ACRE_ELIMIT, word, "a word has at most 511 bytes");
    }
    switch (attribute->kind) {
    case COUNT:
        return take_count(p, attribute, text, at);
    case SIZE:
        return take_size(p, attribute, text, at);
    case CELSIUS:
        return take_celsius(p, word, at);
    case LABELS:
        return take_labels(p, word, at);
    case NAME:
        if (!acre_str_is_name(word, ACRE_SIM_NAME_MAX)) {
            return fail(p, ACRE_EINVALID, word,
                        "a name must be 1 to 63 letters, digits or -_./:@+");
        }
        *(const char **)at = keep(p, word);
        return 0;
    case STATE:
        if (!acre_str_is(word, "ok") && !acre_str_is(word, "lost")) {
            return fail(p, ACRE_EINVALID, word, "unknown state; accepted: ok, lost");
        }
        *(bool *)at = acre_str_is(word, "lost");
        return 0;
    }
    return ACRE_EINTERNAL;
}

/* "word value" pairs to the end of the line. */
static int take_attributes(struct parser *p, const struct attribute *attributes, size_t count,
                           const char *accepted, void *target, uint32_t *given) {
    uint32_t seen = 0;
    struct acre_str word;
    struct acre_str value;
    while (next_word(p, &word)) {
        size_t i = 0;
        while (i < count && !acre_str_is(word, attributes[i].word)) {
            i++;
        }
        if (i == count) {
            return fail(p, ACRE_EINVALID, word, accepted);
        }
        if ((seen >> i & 1) != 0) {
            return fail(p, ACRE_EEXISTS, word, "set twice");
        }
        if (!next_word(p, &value)) {
            return fail(p, ACRE_EINVALID, word, "missing value");
        }
        int r = take_value(p, &attributes[i], value, target);
        if (r < 0) {
            return r;
        }
        seen |= 1U << i;
        *given |= attributes[i].given;
    }
    return 0;
}

static int parse_node(struct parser *p) {
    struct acre_sim_cluster *cluster = p->cluster;
    struct acre_str name;
    if (!next_word(p, &name) || !acre_str_is_name(name, ACRE_SIM_NAME_MAX)) {
        return fail(p, ACRE_EINVALID, name,
                    "a node's name must be 1 to 63 letters, digits or -_./:@+");
    }
    uint32_t known = acre_names_find(cluster->node_names, name);
    if (known != 0) {
        return fail(p, ACRE_EEXISTS, name, "a node of this name already exists");
    }
    if (cluster->node_count >= ACRE_SIM_NODES_MAX) {
        return fail(p, ACRE_ELIMIT, name, "a file has at most 100000 nodes");
    }
    struct acre_sim_node node = {.first_label = cluster->label_count,
                                 .first_group = cluster->group_count};
    struct node_line line = {0};
    uint32_t given = 0;
    int r = take_attributes(p, node_attributes, ACRE_COUNT(node_attributes),
                            "unknown attribute; accepted: cpus, ram, labels", &line, &given);
    if (r < 0) {
        return r;
    }
    node.name = acre_names_text(cluster->node_names, acre_names_intern(cluster->node_names, name));
    node.cpu_milli = (uint64_t)line.cpus * 1000;
    node.ram_mib = line.ram_mib;
    node.label_count = line.label_count;
    cluster->nodes =
        grow(cluster->nodes, cluster->node_count, &cluster->node_capacity, sizeof(*cluster->nodes));
    cluster->nodes[cluster->node_count++] = node;
    return 0;
}

/* "COUNT x MODEL" */
static int parse_group_head(struct parser *p, struct acre_sim_group *group) {
    static const struct attribute count = {"gpu", COUNT, GROUP(count), ACRE_SIM_DEVICES_MAX, 0};
    static const struct attribute model = {"model", NAME, GROUP(model), 0, 0};
    struct acre_str word;
    if (!next_word(p, &word)) {
        return fail(p, ACRE_EINVALID, ACRE_STR("gpu"),
                    "expected gpu COUNT x MODEL memory SIZE ...");
    }
    int r = take_value(p, &count, word, group);
    if (r < 0) {
        return r;
    }
    if (!next_word(p, &word) || !acre_str_is(word, "x")) {
        return fail(p, ACRE_EINVALID, word, "expected gpu COUNT x MODEL memory SIZE ...");
    }
    if (!next_word(p, &word)) {
        return fail(p, ACRE_EINVALID, ACRE_STR("x"), "missing model");
    }
    return take_value(p, &model, word, group);
}

static int parse_group(struct parser *p) {
    struct acre_sim_cluster *cluster = p->cluster;
    if (cluster->node_count == 0) {
        return fail(p, ACRE_EINVALID, ACRE_STR("gpu"), "a node line must come first");
    }
    struct acre_sim_node *node = &cluster->nodes[cluster->node_count - 1];
    struct acre_sim_group group = {.vendor = ""};
    int r = parse_group_head(p, &group);
    if (r < 0) {
        return r;
    }
    r = take_attributes(p, group_attributes, ACRE_COUNT(group_attributes),
                        "unknown attribute; accepted: memory, vendor, island, used, utilization, "
                        "temperature, power, power-limit, state",
                        &group, &group.given);
    if (r < 0) {
        return r;
    }
    if (group.memory_mib == 0) {
        return fail(p, ACRE_EINVALID, ACRE_STR("memory"), "required, for example memory 80GiB");
    }
    if (group.used_mib > group.memory_mib) {
        return fail(p, ACRE_EINVALID, ACRE_STR("used"), "larger than memory");
    }
    if (node->device_count + group.count > ACRE_SIM_DEVICES_MAX) {
        return fail(p, ACRE_ELIMIT, acre_str_from(node->name), "a node has at most 64 devices");
    }
    cluster->groups = grow(cluster->groups, cluster->group_count, &cluster->group_capacity,
                           sizeof(*cluster->groups));
    cluster->groups[cluster->group_count++] = group;
    node->group_count++;
    node->device_count += group.count;
    return 0;
}

static int parse_line(struct parser *p, struct acre_str line) {
    const char *comment = line.length > 0 ? memchr(line.data, '#', line.length) : NULL;
    if (comment != NULL) {
        line.length = (size_t)(comment - line.data);
    }
    p->rest = line;
    struct acre_str word;
    if (!next_word(p, &word)) {
        return 0;
    }
    if (acre_str_is(word, "node")) {
        return parse_node(p);
    }
    if (acre_str_is(word, "gpu")) {
        return parse_group(p);
    }
    return fail(p, ACRE_EINVALID, word, "a line must start with node, gpu or #");
}

int acre_sim_parse(const char *name, struct acre_str text, struct acre_sim_cluster **ret_cluster,
                   struct acre_error *err) {
    if (text.length > ACRE_SIM_FILE_MAX) {
        return acre_fail(err, ACRE_ELIMIT, "%s: %zu bytes; accepted: at most %u", name, text.length,
                         (unsigned)ACRE_SIM_FILE_MAX);
    }
    struct acre_sim_cluster *cluster = acre_calloc(1, sizeof(*cluster));
    cluster->node_names = acre_names_create();
    cluster->words = acre_names_create();
    struct parser p = {.file = name, .cluster = cluster, .err = err};
    struct acre_split lines = acre_split_begin(text, '\n');
    struct acre_str line;
    int r = 0;
    while (r == 0 && acre_split_next(&lines, &line)) {
        p.line++;
        r = parse_line(&p, line);
    }
    if (r == 0 && cluster->node_count == 0) {
        r = acre_fail(err, ACRE_EINVALID,
                      "%s: no node line; examples/two-nodes.acre describes the format", name);
    }
    if (r < 0) {
        acre_sim_destroy(cluster);
        return r;
    }
    *ret_cluster = cluster;
    return 0;
}

int acre_sim_load(const char *path, struct acre_sim_cluster **ret_cluster, struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, ACRE_SIM_FILE_MAX);
    int r = acre_file_read(path, ACRE_SIM_FILE_MAX, &text, err);
    if (r == 0) {
        r = acre_sim_parse(path, (struct acre_str){text.data, text.length}, ret_cluster, err);
    }
    acre_buf_finish(&text);
    return r;
}

void acre_sim_destroy(struct acre_sim_cluster *cluster) {
    if (cluster == NULL) {
        return;
    }
    acre_names_destroy(cluster->node_names);
    acre_names_destroy(cluster->words);
    free(cluster->nodes);
    free(cluster->groups);
    free(cluster->labels);
    free(cluster);
}

uint32_t acre_sim_node_count(const struct acre_sim_cluster *cluster) {
    return cluster->node_count;
}

const struct acre_sim_node *acre_sim_node(const struct acre_sim_cluster *cluster, uint32_t index) {
    ACRE_ASSERT(index < cluster->node_count);
    return &cluster->nodes[index];
}

const struct acre_sim_group *acre_sim_groups(const struct acre_sim_cluster *cluster,
                                             const struct acre_sim_node *node) {
    return cluster->groups == NULL ? NULL : cluster->groups + node->first_group;
}

const struct acre_sim_label *acre_sim_labels(const struct acre_sim_cluster *cluster,
                                             const struct acre_sim_node *node) {
    return cluster->labels == NULL ? NULL : cluster->labels + node->first_label;
}

const struct acre_sim_group *acre_sim_device(const struct acre_sim_cluster *cluster,
                                             const struct acre_sim_node *node, uint32_t index,
                                             uint32_t *ret_index) {
    ACRE_ASSERT(index < node->device_count);
    const struct acre_sim_group *group = acre_sim_groups(cluster, node);
    while (index >= group->count) {
        index -= group->count;
        group++;
    }
    *ret_index = index;
    return group;
}

char *acre_sim_device_id(const struct acre_sim_node *node, uint32_t index, char *text,
                         size_t size) {
    snprintf(text, size, "sim:%s/%" PRIu32, node->name, index);
    return text;
}
