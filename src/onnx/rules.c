// SPDX-License-Identifier: MIT
// The operator rules: found by name, domain and version.
//
// A name is first looked for in the node's own domain. Exporters are careless with domains, so a
// name of the standard domain that only a vendor's has (SkipLayerNormalization), and any name in a
// domain of which we know nothing, is taken from where it exists.
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "onnx/graph.h"

static const struct mgx_onnx_op *const table[] = {
#define ONNX(name) &mgx_onnx_##name,
#include "onnx_list.inc"
#undef ONNX
    NULL};

static const char *domain_of(const struct mgx_onnx_op *op)
{
    return op->domain ? op->domain : "";
}

enum mgx_status mgx_onnx_rules_init(struct mgx_onnx_import *import)
{
    for (int i = 0; table[i]; i++) {
        struct mgx_onnx_rule *rule = MGX_NEW(&import->arena, struct mgx_onnx_rule);
        if (!rule)
            return mgx_fail_memory(import->diag);
        *rule = (struct mgx_onnx_rule){table[i], mgx_map_find(&import->rules, table[i]->name)};
        if (!mgx_map_put(&import->rules, table[i]->name, rule) ||
            !mgx_map_put(&import->domains, domain_of(table[i]), rule))
            return mgx_fail_memory(import->diag);
    }
    return MGX_OK;
}

static bool in_domain(const struct mgx_onnx_op *op, struct mgx_slice domain)
{
    const struct mgx_slice own = {domain_of(op), strlen(domain_of(op))};
    return mgx_onnx_same_domain(own, domain);
}

static bool in_force(const struct mgx_onnx_op *op, int64_t opset)
{
    return op->since <= opset && (!op->until || opset <= op->until);
}

// Version to go by in a domain that the model does not import: what MIGraphX takes for ONNX, the
// only one there is for the others.
static int64_t version_of(const struct mgx_onnx_graph *g, struct mgx_slice domain)
{
    enum { USUAL = 13 };
    const int64_t version = mgx_onnx_opset_of(g, domain);
    if (version)
        return version;
    if (!mgx_onnx_is_standard(domain))
        return 1;
    const int64_t ir = g->import->model.ir_version;
    return ir > 0 && ir < 3 ? 1 : USUAL; // models older than opset imports are of opset 1
}

static const struct mgx_onnx_op *search(const struct mgx_onnx_rule *rule,
                                        const struct mgx_onnx_graph *g, struct mgx_slice domain,
                                        int64_t *opset, bool *known)
{
    *opset = version_of(g, domain);
    *known = false;
    for (; rule; rule = rule->next) {
        if (!in_domain(rule->op, domain))
            continue;
        *known = true;
        if (in_force(rule->op, *opset))
            return rule->op;
    }
    return NULL;
}

const struct mgx_onnx_op *mgx_onnx_rule_find(const struct mgx_onnx_import *import,
                                             const struct mgx_onnx_graph *g,
                                             const struct mgx_onnx_node_proto *node, int64_t *opset,
                                             const char **why)
{
    struct mgx_onnx_rule *rules =
        mgx_map_findn(&import->rules, node->op_type.text, node->op_type.size);
    bool known;
    const struct mgx_onnx_op *op = search(rules, g, node->domain, opset, &known);
    if (op)
        return op;
    const bool standard = mgx_onnx_is_standard(node->domain);
    const bool foreign =
        !standard && !mgx_map_findn(&import->domains, node->domain.text, node->domain.size);
    *why = known ? "not known in this opset" : "operator is not known";
    if (known || !(standard || foreign))
        return NULL;
    const struct mgx_slice ours = {"", 0};
    int64_t version;
    if (foreign && (op = search(rules, g, ours, &version, &known))) {
        *opset = version;
        return op;
    }
    for (const struct mgx_onnx_rule *rule = rules; rule; rule = rule->next) {
        const struct mgx_slice domain = {domain_of(rule->op), strlen(domain_of(rule->op))};
        if ((op = search(rules, g, domain, &version, &known))) {
            *opset = version;
            return op;
        }
    }
    return NULL;
}

// --- the public list ---

enum { RULES = MGX_COUNT(table) - 1 };
_Static_assert(RULES < 1000, "the sorted names stand on the stack");

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The distinct names in order; how many there are.
static int sorted_names(const char **out)
{
    int count = 0;
    for (int i = 0; i < RULES; i++)
        out[i] = table[i]->name;
    qsort(out, RULES, sizeof *out, by_name);
    for (int i = 0; i < RULES; i++)
        if (count == 0 || strcmp(out[count - 1], out[i]) != 0)
            out[count++] = out[i];
    return count;
}

int mgx_onnx_operator_count(void)
{
    const char *names[RULES];
    return sorted_names(names);
}

// Sorts anew each time: this is asked by a user's listing, not by an import.
const char *mgx_onnx_operator_name(int i)
{
    const char *names[RULES];
    const int count = sorted_names(names);
    return i >= 0 && i < count ? names[i] : NULL;
}
