/*
 * The table of methods against the generated descriptors.
 */
#include "runtime/wire/method.h"

#include "redistinto/v1/admin.pb-c.h"
#include "redistinto/v1/coordinator.pb-c.h"
#include "redistinto/v1/esi.pb-c.h"
#include "redistinto/v1/instance.pb-c.h"
#include "redistinto/v1/ownership.pb-c.h"
#include "redistinto/v1/registry.pb-c.h"
#include "tests/support/check.h"

TestSuite(method, .fini = test_alloc_expect_none);

Test(method, row_at_kind_is_of_that_kind_and_matches_the_descriptor)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++) {
        const struct wire_method *method = wire_method_of(kind);
        const ProtobufCMethodDescriptor *descriptor =
            protobuf_c_service_descriptor_get_method_by_name(method->service, method->name);

        cr_assert_eq((int)method->kind, kind);
        cr_assert_not_null(descriptor, "%s", method->name);
        cr_assert_eq(descriptor->input, method->request, "%s", method->name);
        cr_assert_eq(descriptor->output, method->response, "%s", method->name);
    }
}

Test(method, request_type_names_the_method)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++)
        cr_assert_eq(wire_method_of_request(wire_method_of(kind)->request), wire_method_of(kind));
    cr_assert_null(wire_method_of_request(&redistinto__v1__version__descriptor));
}

Test(method, every_method_of_every_service_is_there)
{
    static const ProtobufCServiceDescriptor *const services[] = {
        &redistinto__v1__admin_service__descriptor,
        &redistinto__v1__coordinator_service__descriptor,
        &redistinto__v1__esi_service__descriptor,
        &redistinto__v1__instance_service__descriptor,
        &redistinto__v1__ownership_service__descriptor,
        &redistinto__v1__registry_service__descriptor,
    };
    const struct wire_method *methods[WIRE_SERVICE_METHODS_MAX];
    size_t total = 0;

    for (size_t i = 0; i < RT_ARRAY_SIZE(services); i++) {
        size_t n = wire_service_methods(services[i], methods);

        cr_assert_eq(n, services[i]->n_methods, "%s", services[i]->name);
        cr_assert_leq(n, WIRE_SERVICE_METHODS_MAX);
        for (size_t k = 0; k < n; k++)
            cr_assert_eq(methods[k]->service, services[i]);
        total += n;
    }
    cr_assert_eq(total, MODEL_N_CALL_KINDS);
}

Test(method, exchanges_are_the_three_that_the_api_has)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++)
        cr_assert_eq(wire_method_of(kind)->shape == WIRE_EXCHANGE,
                     kind == MODEL_CALL_RECONCILE || kind == MODEL_CALL_KEEP_ALIVE ||
                         kind == MODEL_CALL_EXECUTE);
}

Test(method, routes_are_watched)
{
    for (int kind = 0; kind < MODEL_N_CALL_KINDS; kind++)
        cr_assert_eq(wire_method_of(kind)->shape == WIRE_WATCH, kind == MODEL_CALL_WATCH_ROUTES);
}
