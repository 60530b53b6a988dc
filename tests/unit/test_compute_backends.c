/* The one list of back ends: what it must be for all that read it, and that they do (GPU-1). */
#include "compute/backend.h"
#include "support/test.h"

#include <acre/compute.h>

#include <string.h>

static void rows_are_whole_and_differ(void) {
    struct acre_compute_device device;
    for (uint32_t i = 0; i < ACRE_BACKEND_COUNT; i++) {
        const struct backend *backend = all_backends[i];
        acre_test_context("row %u", i);
        REQUIRE(backend != NULL && backend->name != NULL);
        CHECK(backend->name[0] != '\0' && strlen(backend->name) < sizeof(device.backend));
        CHECK(strpbrk(backend->name, ", :") == NULL); /* "cuda,cpu", "cuda:0" */
        CHECK(backend->what != NULL && backend->open != NULL && backend->seat_open != NULL);
        CHECK(backend->language != ACRE_LANGUAGE_AUTO);
        CHECK(backend_find(acre_str_from(backend->name)) == backend);
        CHECK_STR(acre_backend_name(i), backend->name);
        if (backend->language != ACRE_LANGUAGE_PORTABLE) { /* nobody else takes it */
            CHECK_STR(acre_language_backend(backend->language), backend->name);
        }
    }
    acre_test_context("%s", "");
    CHECK(acre_backend_name(ACRE_BACKEND_COUNT) == NULL);
    CHECK(backend_find(acre_str_from("")) == NULL);
    CHECK(acre_language_backend(ACRE_LANGUAGE_PORTABLE) == NULL);
    CHECK(acre_language_backend(ACRE_LANGUAGE_AUTO) == NULL);
    /* Who needs some device takes the last. */
    CHECK(all_backends[ACRE_BACKEND_COUNT - 1] == &backend_cpu);
}

/* Devices of a runtime come in the order of the rows; one that is not there says why. */
static void a_runtime_has_all_of_them(void) {
    struct acre_compute *compute;
    struct acre_error err = {0};
    REQUIRE_EQ(acre_compute_open(NULL, &compute, &err), 0);
    uint32_t at = 0;
    for (uint32_t i = 0; acre_backend_name(i) != NULL; i++) {
        const char *name = acre_backend_name(i);
        acre_test_context("%s", name);
        uint32_t first = at;
        while (at < acre_compute_count(compute) &&
               strcmp(acre_compute_device(compute, at)->backend, name) == 0) {
            at++;
        }
        CHECK(at > first || acre_compute_absent(compute, name) != NULL);
    }
    acre_test_context("%s", "");
    CHECK_U64(at, acre_compute_count(compute));
    acre_compute_close(compute);
}

static void a_name_that_is_none_gets_them_listed(void) {
    struct acre_compute *compute = NULL;
    struct acre_error err = {0};
    struct acre_compute_options options = {.backends = "cpu,gpu"};
    CHECK_EQ(acre_compute_open(&options, &compute, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "backends: unknown back end 'gpu'; accepted: ");
    for (uint32_t i = 0; acre_backend_name(i) != NULL; i++) {
        CHECK_HAS(err.text, acre_backend_name(i));
    }
}

static const struct acre_test tests[] = {
    {"rows_are_whole_and_differ", rows_are_whole_and_differ, 0},
    {"a_runtime_has_all_of_them", a_runtime_has_all_of_them, 0},
    {"a_name_that_is_none_gets_them_listed", a_name_that_is_none_gets_them_listed, 0},
};

ACRE_TEST_MAIN(tests)
