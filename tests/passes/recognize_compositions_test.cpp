#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

using Extents = std::vector<std::int64_t>;

/// The formula of y after the pass, which must compute the same.
std::string recognized(TinyGraph& t, ValueId y) {
    t.output("y", y);
    Graph graph = t.finish();
    const Graph before = graph;
    run_pass("recognize_compositions", graph);
    expect_same_results(before, graph, 1e-5);
    return formula(graph, "y");
}

struct RmsNorm : TinyGraph {
    ValueId x = input("x", {2, 3, 4}), w = constant("w", {4});
    ValueId epsilon = constant<float>("epsilon", DType::f32, {}, {0.25f});

    ValueId mean(ValueId squares, Extents axes = {2}, bool keep = true) {
        return op("reduce_mean", {squares}, {{"axes", std::move(axes)}, {"keep_dimensions", keep}});
    }
    ValueId root(ValueId squares) { return op("sqrt", {op("add", {mean(squares), epsilon})}); }
    ValueId squares() { return op("mul", {x, x}); }
};

TEST(RecognizeCompositions, MakesRmsNormOfItsParts) {
    {
        RmsNorm t;
        const ValueId y = t.op("mul", {t.x, t.op("reciprocal", {t.root(t.squares())})});
        EXPECT_EQ(recognized(t, t.op("mul", {t.w, y})), "rms_norm(x, w) {epsilon=0.25}");
    }
    {
        RmsNorm t;
        const ValueId two = t.constant<float>("two", DType::f32, {}, {2});
        EXPECT_EQ(recognized(t, t.op("div", {t.x, t.root(t.op("pow", {t.x, two}))})),
                  "rms_norm(x) {epsilon=0.25}");
    }
    {
        RmsNorm t;
        const ValueId root = t.op("sqrt", {t.op("add", {t.epsilon, t.mean(t.squares(), {-1, -2})})});
        EXPECT_EQ(recognized(t, t.op("div", {t.x, root})), "rms_norm(x) {dimensions=2, epsilon=0.25}");
    }
}

TEST(RecognizeCompositions, LeavesWhatIsNoRmsNorm) {
    {
        RmsNorm t;  // another operand is squared
        const ValueId z = t.input("z", {2, 3, 4});
        EXPECT_EQ(recognized(t, t.op("div", {t.x, t.root(t.op("mul", {z, z}))})).substr(0, 4), "div(");
    }
    {
        RmsNorm t;  // the mean runs over the first dimension
        const ValueId root = t.op("sqrt", {t.op("add", {t.mean(t.squares(), {0}), t.epsilon})});
        EXPECT_EQ(recognized(t, t.op("div", {t.x, root})).substr(0, 4), "div(");
    }
    {
        RmsNorm t;  // the norm itself is an output, too
        const ValueId y = t.op("div", {t.x, t.root(t.squares())});
        t.output("norm", y);
        EXPECT_EQ(recognized(t, t.op("mul", {y, t.w})), "mul(rms_norm(x) {epsilon=0.25}, w)");
    }
    {
        RmsNorm t;  // the factor is a matrix
        const ValueId m = t.constant("m", {3, 4});
        const ValueId y = t.op("div", {t.x, t.root(t.squares())});
        EXPECT_EQ(recognized(t, t.op("mul", {y, m})), "mul(rms_norm(x) {epsilon=0.25}, m)");
    }
}

TEST(RecognizeCompositions, MakesGatedUnitsOfActivationAndProduct) {
    for (const bool swapped : {false, true}) {
        TinyGraph t;
        const ValueId a = t.input("a", {2, 3}), b = t.input("b", {2, 3});
        const ValueId silu = t.op("mul", {t.op("sigmoid", {a}), a});
        EXPECT_EQ(recognized(t, swapped ? t.op("mul", {b, silu}) : t.op("mul", {silu, b})), "glu(a, b)");
    }
    TinyGraph t;
    const ValueId a = t.input("a", {2, 3}), b = t.input("b", {2, 3});
    EXPECT_EQ(recognized(t, t.op("mul", {t.op("gelu", {a}), b})), "glu(a, b) {activation=\"gelu\"}");
}

TEST(RecognizeCompositions, LeavesGatesThatAreReadTwiceOrBroadcast) {
    {
        TinyGraph t;
        const ValueId silu = t.op("silu", {t.input("a", {2, 3})});
        t.output("silu", silu);
        EXPECT_EQ(recognized(t, t.op("mul", {silu, t.input("b", {2, 3})})), "mul(silu(a), b)");
    }
    {
        TinyGraph t;
        const ValueId silu = t.op("silu", {t.input("a", {2, 3})});
        EXPECT_EQ(recognized(t, t.op("mul", {silu, t.input("b", {3})})), "mul(silu(a), b)");
    }
}

struct Gelu : TinyGraph {
    ValueId x = input("x", {2, 3});

    ValueId number(float value) { return constant<float>("", DType::f32, {}, {value}); }
    ValueId times(ValueId a, float b) { return op("mul", {a, number(b)}); }
    ValueId plus(ValueId a, float b) { return op("add", {number(b), a}); }
    ValueId product(ValueId a, ValueId b) { return op("mul", {a, b}); }

    ValueId erf() { return op("erf", {op("div", {x, number(std::sqrt(2.0f))})}); }
    /// sqrt(2 / pi) (x + 0.044715 x^3).
    ValueId curve(ValueId cube, float cubic = 0.044715f) {
        return times(op("add", {x, times(cube, cubic)}), 0.7978845608f);
    }
    ValueId cube() { return product(product(x, x), x); }
};

/// Each in an order that some exporter writes.
TEST(RecognizeCompositions, MakesGeluOfItsErf) {
    {
        Gelu t;
        EXPECT_EQ(recognized(t, t.times(t.product(t.x, t.plus(t.erf(), 1)), 0.5f)), "gelu(x)");
    }
    {
        Gelu t;
        const ValueId erf = t.op("erf", {t.times(t.x, std::sqrt(0.5f))});
        EXPECT_EQ(recognized(t, t.product(t.times(t.x, 0.5f), t.plus(erf, 1))), "gelu(x)");
    }
    {
        Gelu t;
        const ValueId half = t.op("div", {t.plus(t.erf(), 1), t.number(2)});
        EXPECT_EQ(recognized(t, t.product(half, t.x)), "gelu(x)");
    }
    {
        Gelu t;  // x is a product itself, which it must not be taken apart for
        t.x = t.product(t.x, t.input("s", {2, 3}));
        EXPECT_EQ(recognized(t, t.product(t.x, t.times(t.plus(t.erf(), 1), 0.5f))), "gelu(mul(x, s))");
    }
}

TEST(RecognizeCompositions, MakesGeluOfItsTanh) {
    {
        Gelu t;
        const ValueId tanh = t.op("tanh", {t.curve(t.cube())});
        EXPECT_EQ(recognized(t, t.product(t.times(t.x, 0.5f), t.plus(tanh, 1))), "gelu_tanh(x)");
    }
    {
        Gelu t;
        const ValueId tanh = t.op("tanh", {t.curve(t.op("pow", {t.x, t.number(3)}))});
        EXPECT_EQ(recognized(t, t.times(t.product(t.plus(tanh, 1), t.x), 0.5f)), "gelu_tanh(x)");
    }
    Gelu t;
    const ValueId gelu = t.product(t.times(t.x, 0.5f), t.plus(t.op("tanh", {t.curve(t.cube())}), 1));
    EXPECT_EQ(recognized(t, t.product(gelu, t.input("y", {2, 3}))), "glu(x, y) {activation=\"gelu_tanh\"}");
}

TEST(RecognizeCompositions, LeavesWhatOnlyResemblesGelu) {
    const auto expect_left = [](Gelu& t, ValueId y) { EXPECT_EQ(recognized(t, y).substr(0, 4), "mul("); };
    {
        Gelu t;
        expect_left(t, t.times(t.product(t.x, t.plus(t.erf(), 1)), 0.25f));
    }
    {
        Gelu t;
        expect_left(t, t.times(t.product(t.x, t.plus(t.erf(), 2)), 0.5f));
    }
    {
        Gelu t;
        expect_left(t, t.times(t.product(t.x, t.plus(t.op("erf", {t.x}), 1)), 0.5f));
    }
    {
        Gelu t;  // of something else
        expect_left(t, t.times(t.product(t.input("y", {2, 3}), t.plus(t.erf(), 1)), 0.5f));
    }
    {
        Gelu t;  // with more elements than it is of
        const ValueId wide = t.product(t.plus(t.erf(), 1), t.input("y", {5, 2, 3}));
        expect_left(t, t.times(t.product(t.x, wide), 0.5f));
    }
    {
        Gelu t;  // another cube's factor, and a square
        const ValueId tanh = t.op("tanh", {t.curve(t.cube(), 0.05f)});
        expect_left(t, t.product(t.times(t.x, 0.5f), t.plus(tanh, 1)));
    }
    {
        Gelu t;
        const ValueId tanh = t.op("tanh", {t.curve(t.product(t.x, t.x))});
        expect_left(t, t.product(t.times(t.x, 0.5f), t.plus(tanh, 1)));
    }
}

struct Rotary : TinyGraph {
    ValueId x = input("x", {2, 3, 4}), cos = input("cos", {3, 4}), sin = input("sin", {3, 4});

    ValueId half(std::int64_t start, std::int64_t size = 2) {
        return op("slice", {x}, {{"starts", Extents{0, 0, start}}, {"sizes", Extents{2, 3, size}}});
    }
    ValueId turned(ValueId second, ValueId first) {
        return op("concat", {op("neg", {second}), first}, {{"axis", std::int64_t{2}}});
    }
};

TEST(RecognizeCompositions, MakesRotaryEmbeddingsOfTurnedHalves) {
    Rotary t;
    const ValueId a = t.op("mul", {t.x, t.cos}), b = t.op("mul", {t.sin, t.turned(t.half(2), t.half(0))});
    EXPECT_EQ(recognized(t, t.op("add", {b, a})), "rotary_embedding(x, cos, sin)");
}

TEST(RecognizeCompositions, LeavesOtherTurns) {
    {
        Rotary t;  // the first half is negated
        const ValueId a = t.op("mul", {t.x, t.cos}), b = t.op("mul", {t.turned(t.half(0), t.half(2)), t.sin});
        EXPECT_EQ(recognized(t, t.op("add", {a, b})).substr(0, 4), "add(");
    }
    {
        Rotary t;  // three and one
        const ValueId a = t.op("mul", {t.x, t.cos}),
                      b = t.op("mul", {t.turned(t.half(3, 1), t.half(0, 3)), t.sin});
        EXPECT_EQ(recognized(t, t.op("add", {a, b})).substr(0, 4), "add(");
    }
}

struct Attention : TinyGraph {
    ValueId q = input("q", {2, 3, 4, 8}), k = input("k", {2, 5, 3, 8}), v = input("v", {2, 3, 5, 6});
    ValueId scale = constant<float>("scale", DType::f32, {}, {0.25f}), mask = input("mask", {2, 1, 1, 5});
    ValueId keys = op("transpose", {k}, {{"permutation", Extents{0, 2, 3, 1}}});
    ValueId product = op("matmul", {q, keys});

    ValueId mixed(ValueId scores) {
        return op("matmul", {op("softmax", {scores}, {{"axis", std::int64_t{3}}}), v});
    }
};

TEST(RecognizeCompositions, MakesAttentionOfSoftmaxBetweenProducts) {
    const std::string keys = "transpose(k) {permutation=[0, 2, 1, 3]}";
    {
        Attention t;
        EXPECT_EQ(
            recognized(t, t.mixed(t.op("add", {t.op("mul", {t.product, t.scale}), t.mask}))),
            "scaled_dot_product_attention(q, " + keys + ", v, mask) {scale=0.25, zero_if_masked=false}");
    }
    {
        Attention t;
        EXPECT_EQ(recognized(t, t.mixed(t.op("div", {t.product, t.scale}))),
                  "scaled_dot_product_attention(q, " + keys + ", v) {scale=4, zero_if_masked=false}");
    }
    {
        Attention t;
        EXPECT_EQ(recognized(t, t.mixed(t.op("add", {t.mask, t.product}))),
                  "scaled_dot_product_attention(q, " + keys + ", v, mask) {scale=1, zero_if_masked=false}");
    }
}

TEST(RecognizeCompositions, TakesZerosForNaNAsRowsWithoutKeys) {
    const auto weights = [](Attention& t, float instead) {
        const ValueId softmax = t.op("softmax", {t.product}, {{"axis", std::int64_t{3}}});
        const ValueId number = t.constant<float>("", DType::f32, {}, {instead});
        return t.op("where", {t.op("is_nan", {softmax}), number, softmax});
    };
    {
        Attention t;
        EXPECT_EQ(recognized(t, t.op("matmul", {weights(t, 0), t.v})),
                  "scaled_dot_product_attention(q, transpose(k) {permutation=[0, 2, 1, 3]}, v) {scale=1}");
    }
    Attention t;
    EXPECT_EQ(recognized(t, t.op("matmul", {weights(t, 1), t.v})).substr(0, 13), "matmul(where(");
}

TEST(RecognizeCompositions, TakesScalesOfQueriesAndKeysForAttentionsOwn) {
    Attention t;
    const ValueId half = t.constant<float>("half", DType::f32, {}, {0.5f});
    const ValueId keys = t.op("transpose", {t.k}, {{"permutation", Extents{0, 2, 3, 1}}});
    const ValueId product = t.op("matmul", {t.op("mul", {half, t.q}), t.op("div", {keys, t.scale})});
    EXPECT_EQ(recognized(t, t.mixed(t.op("mul", {product, t.scale}))),
              "scaled_dot_product_attention(q, transpose(k) {permutation=[0, 2, 1, 3]}, v) {scale=0.5, "
              "zero_if_masked=false}");
}

TEST(RecognizeCompositions, TransposesMatricesAsTheyLie) {
    TinyGraph t;
    const ValueId q = t.input("q", {2, 6, 1, 4}), v = t.input("v", {2, 6, 5, 4});
    const ValueId apart =
        t.op("reshape", {t.input("k", {2, 3, 5, 4})}, {{"new_shape", Extents{2, 3, 1, 5, 4}}});
    const ValueId groups = t.op("expand", {apart}, {{"new_shape", Extents{2, 3, 2, 5, 4}}});
    const auto turned = [&](ValueId keys) {
        const ValueId joined = t.op("reshape", {keys}, {{"new_shape", Extents{12, 5, 4}}});
        const ValueId across = t.op("transpose", {joined}, {{"permutation", Extents{0, 2, 1}}});
        return t.op("reshape", {across}, {{"new_shape", Extents{2, 6, 4, 5}}});
    };
    const ValueId scores = t.op("matmul", {q, turned(groups)});
    const ValueId y = t.op("matmul", {t.op("softmax", {scores}, {{"axis", std::int64_t{3}}}), v});
    t.output("alone", turned(v));
    EXPECT_EQ(recognized(t, y),
              "scaled_dot_product_attention(q, reshape(expand(reshape(k) {new_shape=[2, 3, 1, 5, 4]}) "
              "{new_shape=[2, 3, 2, 5, 4]}) {new_shape=[2, 6, 5, 4]}, v) {scale=1, zero_if_masked=false}");
}

TEST(RecognizeCompositions, LeavesAttentionWhoseScoresAreReadElsewhereOrWhoseKeysAreNotTransposed) {
    {
        Attention t;
        t.output("scores", t.product);
        EXPECT_EQ(recognized(t, t.mixed(t.product)).substr(0, 7), "matmul(");
    }
    {
        Attention t;
        t.output("keys", t.keys);
        EXPECT_EQ(recognized(t, t.mixed(t.product)).substr(0, 7), "matmul(");
    }
    {
        Attention t;
        const ValueId product = t.op("matmul", {t.q, t.input("other", {2, 3, 8, 5})});
        EXPECT_EQ(recognized(t, t.mixed(product)).substr(0, 7), "matmul(");
    }
}

TEST(RecognizeCompositions, LetsAttentionReadHeadsThatWereRepeatedForIt) {
    TinyGraph t;
    const ValueId q = t.input("q", {1, 6, 2, 4});
    const auto repeated = [&](const std::string& name) {
        const ValueId apart =
            t.op("reshape", {t.input(name, {1, 2, 5, 4})}, {{"new_shape", Extents{1, 2, 1, 5, 4}}});
        const ValueId groups = t.op("expand", {apart}, {{"new_shape", Extents{1, 2, 3, 5, 4}}});
        return t.op("reshape", {groups}, {{"new_shape", Extents{1, 6, 5, 4}}});
    };
    const ValueId y =
        t.op("scaled_dot_product_attention", {q, repeated("k"), repeated("v")}, {{"scale", 0.5}});
    EXPECT_EQ(recognized(t, y), "scaled_dot_product_attention(q, k, v) {scale=0.5}");
}

/// Attention over [batch, rows, heads, width], exchanged for it and back by `order`.
struct AttentionOfRows : TinyGraph {
    ValueId q = input("q", {2, 4, 3, 8}), k = input("k", {2, 5, 3, 8}), v = input("v", {2, 5, 3, 6});

    ValueId exchanged(ValueId x, Extents order = {0, 2, 1, 3}) {
        return op("transpose", {x}, {{"permutation", std::move(order)}});
    }
    ValueId by_head(ValueId value, NamedAttrs attrs = {}) {
        return op("scaled_dot_product_attention", {exchanged(q), exchanged(k), value}, std::move(attrs));
    }
};

TEST(RecognizeCompositions, LetsAttentionReadAndWriteHeadsAfterRows) {
    AttentionOfRows t;
    const ValueId mask = t.input("mask", {4, 5});
    const ValueId y = t.op("scaled_dot_product_attention",
                           {t.exchanged(t.q), t.exchanged(t.k), t.exchanged(t.v), mask}, {{"causal", true}});
    EXPECT_EQ(recognized(t, t.exchanged(y, {0, -2, 1, 3})),
              "scaled_dot_product_attention(q, k, v, mask) {causal=true, heads_after_rows=true}");
}

TEST(RecognizeCompositions, KeepsHeadsBeforeRowsWhereAnyOperandOrReaderWantsThem) {
    {
        AttentionOfRows t;
        const ValueId cache = t.input("cache", {2, 3, 5, 6});
        EXPECT_EQ(recognized(t, t.exchanged(t.by_head(cache))).substr(0, 10), "transpose(");
    }
    {
        AttentionOfRows t;
        const ValueId y = t.by_head(t.exchanged(t.v));
        t.output("by_head", y);
        EXPECT_EQ(recognized(t, t.exchanged(y)).substr(0, 10), "transpose(");
    }
    AttentionOfRows t;
    const ValueId y = t.by_head(t.exchanged(t.v));
    EXPECT_EQ(recognized(t, t.exchanged(y, {2, 0, 1, 3})).substr(0, 10), "transpose(");
}

TEST(RecognizeCompositions, KeepsHeadsThatAlternate) {
    TinyGraph t;  // tiled, not repeated in place: head 0 of the query reads head 0, head 1 head 1
    const ValueId q = t.input("q", {1, 4, 2, 4}), k = t.input("k", {1, 2, 5, 4});
    const ValueId apart = t.op("reshape", {k}, {{"new_shape", Extents{1, 1, 2, 5, 4}}});
    const ValueId groups = t.op("expand", {apart}, {{"new_shape", Extents{1, 2, 2, 5, 4}}});
    const ValueId tiled = t.op("reshape", {groups}, {{"new_shape", Extents{1, 4, 5, 4}}});
    const std::string formula = recognized(t, t.op("scaled_dot_product_attention", {q, tiled, tiled}));
    EXPECT_NE(formula.find("expand"), std::string::npos) << formula;
}

TEST(RecognizeCompositions, DoesNotReadStatesThatHaveBeenOverwritten) {
    TinyGraph t;
    const ValueId a = t.state("a", {2}), b = t.input("b", {2});
    const ValueId silu = t.op("silu", {a});
    const ValueId next = t.op("assign", {a, b});
    t.output("next", next);
    EXPECT_EQ(recognized(t, t.op("mul", {silu, b})), "mul(silu(a), b)");
}

}  // namespace
}  // namespace headrace::testing
