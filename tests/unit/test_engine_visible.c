/* test_engine_visible.c - ENG-1: a member sees its own GPUs, by name, and no other. */
#include "engine/visible.h"
#include "support/test.h"
#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define H200 "GPU-11111111-2222-3333-4444-555555555555"
#define H201 "GPU-66666666-7777-8888-9999-000000000000"

static const struct acre_run_device whole[] = {
    {.id = H201, .vendor = "NVIDIA", .pci = "0000:5d:00.0", .milli = 1000, .isolation = "none"},
    {.id = H200, .vendor = "nvidia", .pci = "0000:3b:00.0", .milli = 1000, .isolation = "none"},
    {.id = "GPU-x", .vendor = "nvidia", .pci = "", .milli = 1000, .member = 1},
};
static const struct acre_run_device half[] = {
    {.id = H200,
     .vendor = "nvidia",
     .pci = "0000:3b:00.0",
     .milli = 505,
     .mib = 71885,
     .isolation = "mps"},
};
static const struct acre_run_device tiny[] = {
    {.id = H200, .vendor = "nvidia", .pci = "", .milli = 9, .isolation = "mps"},
};
static const struct acre_run_device sliced[] = {
    {.id = H200, .vendor = "nvidia", .pci = "", .milli = 500, .isolation = "time-slicing"},
};
static const struct acre_run_device mig[] = {
    {.id = "MIG-aaaa",
     .vendor = "nvidia",
     .pci = "0000:3b:00.0",
     .milli = 1000,
     .isolation = "mig",
     .gpu_instance = 3,
     .compute_instance = 1},
};
static const struct acre_run_device amd[] = {
    {.id = "GPU-1122334455667701",
     .vendor = "amd",
     .pci = "0000:05:00.0",
     .milli = 500,
     .cu_ranges = "0-151"},
    {.id = "0000:27:00.0", .vendor = "AMD", .pci = "0000:27:00.0", .milli = 1000},
    {.id = "GPU-1122334455667701/xcp1",
     .vendor = "amd",
     .pci = "0000:05:00.0",
     .milli = 500,
     .cu_ranges = "0-18,38-40"},
};
static const struct acre_run_device lost_amd[] = {
    {.id = "0000:99:00.0", .vendor = "amd", .pci = "0000:99:00.0", .milli = 1000},
};
static const struct acre_run_device bad_pci[] = {
    {.id = "GPU-1/xcp0", .vendor = "amd", .pci = "five", .milli = 1000},
};
static const struct acre_run_device simulated[] = {
    {.id = "sim-0",
     .vendor = "nvidia",
     .pci = "",
     .milli = 250,
     .mib = 20000,
     .isolation = "mps",
     .simulated = true},
};
static const struct acre_run_device other[] = {
    {.id = "0000:00:02.0", .vendor = "", .pci = "0000:00:02.0", .milli = 1000},
};
static const struct acre_run_device mixed[] = {
    {.id = H200, .vendor = "nvidia", .pci = "", .milli = 500, .isolation = "mps"},
    {.id = H201, .vendor = "nvidia", .pci = "", .milli = 1000, .isolation = "none"},
};

/* Two CPUs, then partitions 0 and 1 of 05:00, then 27:00: ROCm's numbers 0, 1, 2. */
static struct tree make_tree(void) {
    static const struct {
        unsigned node, gpu, location, render;
    } nodes[] = {
        {0, 0, 0, 0}, {1, 0, 0, 0}, {2, 11, 0x500, 128}, {3, 12, 0x501, 129}, {4, 13, 0x2700, 0}};
    struct tree tree = tree_create(NULL);
    char path[128], text[200];
    for (size_t i = 0; i < ACRE_COUNT(nodes); i++) {
        snprintf(path, sizeof(path), "sys/class/kfd/kfd/topology/nodes/%u/gpu_id", nodes[i].node);
        snprintf(text, sizeof(text), "%u\n", nodes[i].gpu);
        tree_put(&tree, path, text);
        snprintf(path, sizeof(path), "sys/class/kfd/kfd/topology/nodes/%u/properties",
                 nodes[i].node);
        snprintf(text, sizeof(text),
                 "cpu_cores_count 0\nlocation_id %u\ndomain 0\n"
                 "drm_render_minor %u\n",
                 nodes[i].location, nodes[i].render);
        tree_put(&tree, path, text);
    }
    tree_put(&tree, "proc/driver/nvidia/gpus/0000:3b:00.0/information",
             "Model: \t\t NVIDIA H200\nIRQ:   \t\t 77\nDevice Minor: \t 2\n");
    tree_put(&tree, "proc/driver/nvidia/gpus/0000:5d:00.0/information", "Device Minor: \t 0\n");
    tree_put(&tree, "proc/driver/nvidia/capabilities/gpu2/mig/gi3/access",
             "DeviceFileMinor: 30\nDeviceFileMode: 292\n");
    tree_put(&tree, "proc/driver/nvidia/capabilities/gpu2/mig/gi3/ci1/access",
             "DeviceFileMinor: 32\nDeviceFileMode: 292\n");
    tree_make_directory(&tree, "sys/bus/pci/devices/0000:27:00.0/drm/renderD130");
    tree_make_directory(&tree, "sys/bus/pci/devices/0000:27:00.0/drm/card2");
    tree_make_directory(&tree, "sys/bus/pci/devices/0000:00:02.0/drm/card0");
    tree_make_directory(&tree, "dev/dri");
    tree_make_directory(&tree, "dev/nvidia-caps");
    return tree;
}

/* Nodes are links to devices that every machine has; their numbers are 1:3 and 1:5. */
static void put_nodes(const struct tree *tree) {
    static const char *const zeros[] = {"nvidiactl",
                                        "nvidia-uvm",
                                        "kfd",
                                        "nvidia-caps/nvidia-cap30",
                                        "dri/renderD130",
                                        "nvidia-caps/nvidia-cap32"};
    static const char *const nulls[] = {"nvidia0", "nvidia2", "dri/renderD128", "dri/renderD129"};
    char path[64];
    for (size_t i = 0; i < ACRE_COUNT(zeros); i++) {
        snprintf(path, sizeof(path), "dev/%s", zeros[i]);
        REQUIRE(symlink("/dev/zero", tree_path(tree, path)) == 0);
    }
    for (size_t i = 0; i < ACRE_COUNT(nulls); i++) {
        snprintf(path, sizeof(path), "dev/%s", nulls[i]);
        REQUIRE(symlink("/dev/null", tree_path(tree, path)) == 0);
    }
}

static struct visible_roots roots_of(const struct tree *tree) {
    static char proc[128], sys[128], dev[128];
    snprintf(proc, sizeof(proc), "%s/proc", tree->root);
    snprintf(sys, sizeof(sys), "%s/sys", tree->root);
    snprintf(dev, sizeof(dev), "%s/dev", tree->root);
    return (struct visible_roots){proc, sys, dev};
}

/* "A=1 B=2": the variables with blanks between. */
static const char *flat(const struct acre_buf *env) {
    static char text[4096];
    REQUIRE(env->length < sizeof(text));
    memcpy(text, env->data, env->length);
    for (size_t i = 0; i < env->length; i++) {
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    text[env->length] = '\0';
    return text;
}

#define ROWS(devices) devices, ACRE_COUNT(devices)

static void the_environment_names_the_members_devices(void) {
    static const struct {
        const struct acre_run_device *devices;
        size_t count;
        uint32_t member;
        const char *expect;
    } rows[] = {
        {NULL, 0, 0, "CUDA_VISIBLE_DEVICES= NVIDIA_VISIBLE_DEVICES=void ROCR_VISIBLE_DEVICES= "},
        {ROWS(whole), 7,
         "CUDA_VISIBLE_DEVICES= NVIDIA_VISIBLE_DEVICES=void ROCR_VISIBLE_DEVICES= "},
        {ROWS(whole), 0,
         "CUDA_VISIBLE_DEVICES=" H201 "," H200 " NVIDIA_VISIBLE_DEVICES=" H201 "," H200
         " CUDA_DEVICE_ORDER=PCI_BUS_ID ROCR_VISIBLE_DEVICES= ACRE_GPUS=" H201 "," H200
         " ACRE_GPU_SHARE=1.0,1.0 ACRE_GPU_MEMORY_MIB=0,0 "},
        {ROWS(whole), 1,
         "CUDA_VISIBLE_DEVICES=GPU-x NVIDIA_VISIBLE_DEVICES=GPU-x CUDA_DEVICE_ORDER=PCI_BUS_ID "
         "ROCR_VISIBLE_DEVICES= ACRE_GPUS=GPU-x ACRE_GPU_SHARE=1.0 ACRE_GPU_MEMORY_MIB=0 "},
        {ROWS(half), 0,
         "CUDA_VISIBLE_DEVICES=" H200 " NVIDIA_VISIBLE_DEVICES=" H200
         " CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_MPS_PIPE_DIRECTORY=/p "
         "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=71885M "
         "ROCR_VISIBLE_DEVICES= ACRE_GPUS=" H200
         " ACRE_GPU_SHARE=0.505 ACRE_GPU_MEMORY_MIB=71885 "},
        {ROWS(tiny), 0,
         "CUDA_VISIBLE_DEVICES=" H200 " NVIDIA_VISIBLE_DEVICES=" H200
         " CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_MPS_PIPE_DIRECTORY=/p "
         "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=1 ROCR_VISIBLE_DEVICES= ACRE_GPUS=" H200
         " ACRE_GPU_SHARE=0.009 ACRE_GPU_MEMORY_MIB=0 "},
        {ROWS(sliced), 0,
         "CUDA_VISIBLE_DEVICES=" H200 " NVIDIA_VISIBLE_DEVICES=" H200
         " CUDA_DEVICE_ORDER=PCI_BUS_ID ROCR_VISIBLE_DEVICES= ACRE_GPUS=" H200
         " ACRE_GPU_SHARE=0.5 ACRE_GPU_MEMORY_MIB=0 "},
        {ROWS(mig), 0,
         "CUDA_VISIBLE_DEVICES=MIG-aaaa NVIDIA_VISIBLE_DEVICES=MIG-aaaa "
         "CUDA_DEVICE_ORDER=PCI_BUS_ID ROCR_VISIBLE_DEVICES= ACRE_GPUS=MIG-aaaa ACRE_GPU_SHARE=1.0 "
         "ACRE_GPU_MEMORY_MIB=0 "},
        {ROWS(amd), 0,
         "NVIDIA_VISIBLE_DEVICES=void ROCR_VISIBLE_DEVICES=GPU-1122334455667701,2,1 "
         "HIP_VISIBLE_DEVICES=0,1,2 HSA_CU_MASK=0:0-151;2:0-18,38-40 "
         "ACRE_GPUS=GPU-1122334455667701,0000:27:00.0,GPU-1122334455667701/xcp1 "
         "ACRE_GPU_SHARE=0.5,1.0,0.5 ACRE_GPU_MEMORY_MIB=0,0,0 "},
        {ROWS(simulated), 0,
         "ACRE_SIMULATED=1 CUDA_VISIBLE_DEVICES=void NVIDIA_VISIBLE_DEVICES=void "
         "ROCR_VISIBLE_DEVICES= ACRE_GPUS=sim-0 ACRE_GPU_SHARE=0.25 ACRE_GPU_MEMORY_MIB=20000 "},
        {ROWS(other), 0,
         "NVIDIA_VISIBLE_DEVICES=void CUDA_VISIBLE_DEVICES= ROCR_VISIBLE_DEVICES= "
         "ACRE_GPUS=0000:00:02.0 ACRE_GPU_SHARE=1.0 ACRE_GPU_MEMORY_MIB=0 "},
    };
    struct tree tree = make_tree();
    struct visible_roots roots = roots_of(&tree);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_buf env;
        struct acre_error err = {0};
        acre_buf_init(&env, 8192);
        acre_test_context("row %zu", i);
        CHECK_EQ(visible_environment(&roots, rows[i].devices, (uint32_t)rows[i].count,
                                     rows[i].member, "/p", &env, &err),
                 0);
        CHECK_STR(flat(&env), rows[i].expect);
        acre_buf_finish(&env);
    }
    tree_erase(&tree);
}

static void what_cannot_be_seen_is_refused(void) {
    static const struct {
        const struct acre_run_device *devices;
        size_t count;
        bool daemon;
        int result;
        const char *text;
    } rows[] = {
        {ROWS(half), false, ACRE_EUNAVAILABLE, "needs an MPS daemon"},
        {ROWS(mixed), true, ACRE_EUNSUPPORTED, "together with 1 other GPUs"},
        {ROWS(lost_amd), true, ACRE_ENOTFOUND, "0000:99:00.0: no GPU at 0000:99:00.0"},
        {ROWS(bad_pci), true, ACRE_EINVALID,
         "GPU-1/xcp0: 'five' is not a PCI address; accepted: one like 0000:05:00.0"},
    };
    struct tree tree = make_tree();
    struct visible_roots roots = roots_of(&tree);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_buf env;
        struct acre_error err = {0};
        acre_buf_init(&env, 8192);
        acre_buf_puts(&env, "A=1");
        acre_test_context("row %zu", i);
        CHECK_EQ(visible_environment(&roots, rows[i].devices, (uint32_t)rows[i].count, 0,
                                     rows[i].daemon ? "/p" : NULL, &env, &err),
                 rows[i].result);
        CHECK_HAS(err.text, rows[i].text);
        CHECK_STR(env.data, "A=1");
        acre_buf_finish(&env);
    }
    tree_erase(&tree);
    struct acre_buf small;
    struct acre_error err = {0};
    acre_buf_init(&small, 16);
    CHECK_EQ(visible_environment(NULL, NULL, 0, 0, NULL, &small, &err), ACRE_ELIMIT);
    acre_buf_finish(&small);
}

static void only_a_share_by_mps_asks_for_a_daemon(void) {
    static const struct {
        const struct acre_run_device *devices;
        size_t count;
        bool wanted;
    } rows[] = {
        {NULL, 0, false},   {ROWS(whole), false}, {ROWS(half), true},       {ROWS(sliced), false},
        {ROWS(mig), false}, {ROWS(amd), false},   {ROWS(simulated), false}, {ROWS(tiny), true},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        const struct acre_run_device *device = &whole[0];
        acre_test_context("row %zu", i);
        CHECK_EQ(visible_mps(rows[i].devices, (uint32_t)rows[i].count, 0, &device, NULL), 0);
        CHECK(device == (rows[i].wanted ? rows[i].devices : NULL));
    }
}

static void a_member_may_open_the_nodes_of_its_devices(void) {
    static const struct {
        const struct acre_run_device *devices;
        size_t count;
        uint32_t member;
        const char *expect; /* below dev/ */
    } rows[] = {
        {NULL, 0, 0, ""},
        {ROWS(half), 0, "nvidia2 nvidiactl nvidia-uvm "},
        {ROWS(half), 1, ""},
        {whole, 2, ACRE_VISIBLE_ALL, "nvidia0 nvidiactl nvidia-uvm nvidia2 "},
        {ROWS(mig), 0,
         "nvidia2 nvidiactl nvidia-uvm nvidia-caps/nvidia-cap30 nvidia-caps/nvidia-cap32 "},
        {ROWS(amd), 0, "kfd dri/renderD128 dri/renderD130 dri/renderD129 "},
        {ROWS(simulated), 0, ""},
    };
    struct tree tree = make_tree();
    struct visible_roots roots = roots_of(&tree);
    put_nodes(&tree);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct visible_nodes nodes = {0};
        struct acre_error err = {0};
        char text[512] = "";
        acre_test_context("row %zu", i);
        CHECK_EQ(visible_find_nodes(&roots, rows[i].devices, (uint32_t)rows[i].count,
                                    rows[i].member, &nodes, &err),
                 0);
        CHECK_STR(err.text, "");
        for (uint32_t k = 0; k < nodes.count; k++) {
            const struct visible_node *node = &nodes.items[k];
            size_t length = strlen(text);
            snprintf(text + length, sizeof(text) - length, "%s ",
                     node->path + strlen(roots.dev) + 1);
            struct stat info;
            REQUIRE(stat(node->path, &info) == 0);
            CHECK_EQ(node->rule.type, 'c');
            CHECK_U64(node->rule.major, major(info.st_rdev));
            CHECK_U64(node->rule.minor, minor(info.st_rdev));
            CHECK_EQ(node->rule.access, ACRE_BPF_READ | ACRE_BPF_WRITE);
        }
        CHECK_STR(text, rows[i].expect);
        visible_nodes_finish(&nodes);
    }
    tree_erase(&tree);
}

static void optional_nodes_are_taken_when_they_are_there(void) {
    struct tree tree = make_tree();
    struct visible_roots roots = roots_of(&tree);
    put_nodes(&tree);
    REQUIRE(symlink("/dev/null", tree_path(&tree, "dev/nvidia-uvm-tools")) == 0);
    struct visible_nodes nodes = {0};
    CHECK_EQ(visible_find_nodes(&roots, half, 1, 0, &nodes, NULL), 0);
    CHECK_U64(nodes.count, 4);
    CHECK_EQ(visible_find_nodes(&roots, half, 1, 0, &nodes, NULL), 0); /* each once */
    CHECK_U64(nodes.count, 4);
    visible_nodes_finish(&nodes);
    tree_erase(&tree);
}

static void missing_nodes_are_named(void) {
    static const struct {
        const struct acre_run_device *devices;
        size_t count;
        const char *remove, *put, *value;
        const char *text;
    } rows[] = {
        {ROWS(half), "dev/nvidia2", NULL, NULL, "dev/nvidia2: No such file"},
        {ROWS(half), "dev/nvidia-uvm", NULL, NULL, "dev/nvidia-uvm: No such file"},
        {ROWS(half), "dev/nvidiactl", "dev/nvidiactl", "x",
         "/dev/nvidiactl is not a character device"},
        {ROWS(half), "proc/driver/nvidia/gpus/0000:3b:00.0", NULL, NULL, "information: No such"},
        {ROWS(half), NULL, "proc/driver/nvidia/gpus/0000:3b:00.0/information", "IRQ: 3\n",
         "has no line 'Device Minor'"},
        {ROWS(half), NULL, "proc/driver/nvidia/gpus/0000:3b:00.0/information",
         "Device Minor: two\n",
         "/proc/driver/nvidia/gpus/0000:3b:00.0/information: 'two' is not a number; accepted: at "
         "most 4294967295"},
        {ROWS(mig), "proc/driver/nvidia/capabilities/gpu2/mig/gi3/ci1", NULL, NULL, "ci1/access"},
        {ROWS(mig), "proc/driver/nvidia/capabilities/gpu2/mig/gi3", NULL, NULL, "gi3/access"},
        {ROWS(amd), "dev/kfd", NULL, NULL, "dev/kfd: No such"},
        {ROWS(amd), "sys/class/kfd/kfd/topology/nodes/3", NULL, NULL, "no GPU at 0000:05:00.0"},
        {ROWS(other), NULL, NULL, NULL, "/sys/bus/pci/devices/0000:00:02.0/drm has no renderD*"},
        {ROWS(other), "sys/bus", NULL, NULL, "0000:00:02.0/drm: No such"},
        {ROWS(tiny), NULL, NULL, NULL,
         "device nodes of GPU-11111111-2222-3333-4444-555555555555: its PCI address is unknown"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct tree tree = make_tree();
        struct visible_roots roots = roots_of(&tree);
        put_nodes(&tree);
        if (rows[i].remove != NULL) {
            tree_delete(&tree, rows[i].remove);
        }
        if (rows[i].put != NULL) {
            tree_put(&tree, rows[i].put, rows[i].value);
        }
        struct visible_nodes nodes = {0};
        struct acre_error err = {0};
        acre_test_context("row %zu", i);
        CHECK(visible_find_nodes(&roots, rows[i].devices, (uint32_t)rows[i].count, 0, &nodes,
                                 &err) < 0);
        CHECK_HAS(err.text, "device nodes of ");
        CHECK_HAS(err.text, rows[i].text);
        CHECK_U64(nodes.count, 0);
        visible_nodes_finish(&nodes);
        tree_erase(&tree);
    }
}

static const struct acre_test tests[] = {
    {"the_environment_names_the_members_devices", the_environment_names_the_members_devices, 0},
    {"what_cannot_be_seen_is_refused", what_cannot_be_seen_is_refused, 0},
    {"only_a_share_by_mps_asks_for_a_daemon", only_a_share_by_mps_asks_for_a_daemon, 0},
    {"a_member_may_open_the_nodes_of_its_devices", a_member_may_open_the_nodes_of_its_devices, 0},
    {"optional_nodes_are_taken_when_they_are_there", optional_nodes_are_taken_when_they_are_there,
     0},
    {"missing_nodes_are_named", missing_nodes_are_named, 0},
};
ACRE_TEST_MAIN(tests)
