// SPDX-License-Identifier: MIT
// The operator rules: found by name, domain and version.
//
// A name is first looked for in the node's own domain. Exporters are careless with domains, so a
// name of the standard domain that only a vendor's has (SkipLayerNormalization), and any name in a
// domain of which we know nothing, is taken from where it exists; so is one that the standard has
// in later versions only (Attention before opset 23).
//
// Cost: O(log rules) a node; nothing is built for an import.
#include <string.h>

#include "base/size.h"
#include "import/rules.h"
#include "onnx/graph.h"

static const struct mgx_onnx_op *const table[] = {
#define ONNX(name) &mgx_onnx_##name,
#include "onnx_list.inc"
#undef ONNX
};
enum { RULES = MGX_COUNT(table) };

static const char *domain_of(const struct mgx_onnx_op *op)
{
    return op->domain ? op->domain : "";
}

static const char *name_of(int place)
{
    return table[place]->name;
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

static const struct mgx_onnx_op *search(struct mgx_rules rules, const struct mgx_onnx_graph *g,
                                        struct mgx_slice domain, int64_t *opset, bool *known)
{
    *opset = version_of(g, domain);
    *known = false;
    for (int i = rules.first + rules.count - 1; i >= rules.first; i--) {
        if (!in_domain(table[i], domain))
            continue;
        *known = true;
        if (in_force(table[i], *opset))
            return table[i];
    }
    return NULL;
}

static bool is_known_domain(struct mgx_slice domain)
{
    for (int i = 0; i < RULES; i++)
        if (mgx_rules_order(domain, domain_of(table[i])) == 0)
            return true;
    return false;
}

const struct mgx_onnx_op *mgx_onnx_rule_find(const struct mgx_onnx_graph *g,
                                             const struct mgx_onnx_node_proto *node, int64_t *opset,
                                             const char **why)
{
    const struct mgx_rules rules = mgx_rules_find(name_of, RULES, node->op_type);
    bool known;
    const struct mgx_onnx_op *op = search(rules, g, node->domain, opset, &known);
    if (op)
        return op;
    const bool standard = mgx_onnx_is_standard(node->domain);
    const bool foreign = !standard && !is_known_domain(node->domain);
    *why = known ? "not known in this opset" : "operator is not known";
    if ((known && !standard) || !(standard || foreign))
        return NULL;
    const struct mgx_slice ours = {"", 0};
    int64_t version;
    if (foreign && (op = search(rules, g, ours, &version, &known))) {
        *opset = version;
        return op;
    }
    for (int i = rules.first + rules.count - 1; i >= rules.first; i--) {
        const struct mgx_slice domain = {domain_of(table[i]), strlen(domain_of(table[i]))};
        if ((op = search(rules, g, domain, &version, &known))) {
            *opset = version;
            return op;
        }
    }
    return NULL;
}

const struct mgx_onnx_op *const *mgx_onnx_rules(int *count)
{
    *count = RULES;
    return table;
}

// --- the public list ---

// The distinct names come in order, as the table does.
int mgx_onnx_operator_count(void)
{
    int count = 0;
    for (int i = 0; i < RULES; i++)
        count += i == 0 || strcmp(table[i - 1]->name, table[i]->name) != 0;
    return count;
}

const char *mgx_onnx_operator_name(int i)
{
    int at = 0;
    for (; at < RULES; at++)
        if ((at == 0 || strcmp(table[at - 1]->name, table[at]->name) != 0) && i-- == 0)
            break;
    return at < RULES ? table[at]->name : NULL;
}
