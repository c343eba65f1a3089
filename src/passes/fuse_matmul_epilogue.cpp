#include <optional>

#include "ops/catalog.h"
#include "passes/epilogue_fusion.h"
#include "passes/fused_matmul.h"
#include "passes/pass.h"

namespace headrace {
namespace {

/// A fused_matmul in the making.
struct MatmulEpilogue : FusedMatmul {
    std::vector<NodeId> parts;  ///< the nodes that it replaces; it computes the result of the last

    bool has_activation() const { return activation != "none"; }
};

class MatmulFusion {
public:
    MatmulFusion(Graph& graph, const OpDef& fused) : graph_(graph), fused_(fused), followers_(graph) {}

    Result<Counts> run() {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            auto epilogue = product(static_cast<NodeId>(i));
            if (!epilogue) continue;
            const MatmulEpilogue start = *epilogue;
            while (extend(*epilogue)) continue;
            if (epilogue->parts.size() == 1) continue;
            HR_TRY(replace(*epilogue));
            ++counts_["products"];
            counts_["biases"] += start.bias == kNoValue && epilogue->bias != kNoValue;
            counts_["activations"] += epilogue->has_activation() && !start.has_activation();
            counts_["residuals"] += epilogue->residual != kNoValue;
        }
        followers_.compact();
        return counts_;
    }

private:
    /// A product with a constant matrix, as the beginning.
    std::optional<MatmulEpilogue> product(NodeId id) {
        if (!followers_.is_kept(id)) return std::nullopt;
        const auto product = fused_matmul(graph_, graph_.node(id));
        if (!product) return std::nullopt;
        const Value& b = graph_.value(product->b);
        if (b.kind != ValueKind::constant || b.type.dtype == DType::f64) return std::nullopt;
        return MatmulEpilogue{*product, {id}};
    }

    /// Takes the only reader of the result so far into the epilogue, where it fits.
    bool extend(MatmulEpilogue& e) {
        auto longer = with_reader(graph_, followers_, fused_, e);
        if (!longer) return false;
        // The fused node runs where its last part did.
        if (!followers_.are_current(longer->parts.back(), {longer->a, longer->bias, longer->residual}))
            return false;
        e = *std::move(longer);
        return true;
    }

    Status replace(const MatmulEpilogue& e) {
        HR_ASSIGN(Node node,
                  make_fused(graph_, e, graph_.node(e.parts.back()).outputs, followers_.label(e.parts)));
        followers_.replace(e.parts, std::move(node));
        return success();
    }

    Graph& graph_;
    const OpDef& fused_;
    EpilogueFusion followers_;
    Counts counts_{{"products", 0}, {"biases", 0}, {"activations", 0}, {"residuals", 0}};
};

/// Makes one fused_matmul of a product with a constant matrix and what follows it: bias, activation,
/// residual.
Result<Counts> fuse_matmul_epilogue(Graph& graph, const PassContext&) {
    return MatmulFusion(graph, catalog_op("fused_matmul")).run();
}

}  // namespace

Pass fuse_matmul_epilogue_pass() {
    // An epilogue would take parts of compositions.
    return {.name = "fuse_matmul_epilogue",
            .summary = "joins product, bias, activation and residual",
            .run = &fuse_matmul_epilogue,
            .after = {"recognize_compositions", "sink_reshapes"}};
}

}  // namespace headrace
