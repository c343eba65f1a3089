#include "ir/attr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/sample_ops.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;
using Attrs = EverythingOp::Attrs;

/// The attributes made from one named value, which must be accepted.
Attrs with(const std::string& name, AttrValue value) {
    const auto box = make_attrs<Attrs>({{name, std::move(value)}});
    EXPECT_TRUE(box.ok()) << box.error().message;
    return box.ok() ? *static_cast<const Attrs*>(box.value().get()) : Attrs{};
}

std::string refusal(const NamedAttrs& named) {
    const auto box = make_attrs<Attrs>(named);
    return box.ok() ? "accepted" : box.error().message;
}

TEST(Attr, WidensWhatLosesNothing) {
    EXPECT_EQ(with("count", std::uint64_t{7}).count, 7);
    EXPECT_EQ(with("scale", std::int64_t{-2}).scale, -2.0);
    EXPECT_EQ(with("type", std::string("f16")).type, DType::f16);
    EXPECT_EQ(with("shape", std::vector<std::int64_t>{2, 3}).shape, (Shape{2, 3}));
    EXPECT_EQ(with("factors", std::vector<std::int64_t>{1, 2}).factors, (std::vector<double>{1, 2}));
    EXPECT_EQ(with("mode", std::string("fancy")).mode, Mode::fancy);
}

TEST(Attr, KeepsLargeIntegersExact) {
    EXPECT_EQ(std::get<std::uint64_t>(with("number", std::uint64_t{UINT64_MAX}).number), UINT64_MAX);
    EXPECT_EQ(std::get<std::int64_t>(with("number", std::int64_t{INT64_MIN}).number), INT64_MIN);
}

TEST(Attr, RefusesOtherTypesAndValues) {
    EXPECT_THAT(refusal({{"flag", std::int64_t{1}}}), HasSubstr("attribute flag: 1 is not a bool"));
    EXPECT_THAT(refusal({{"count", 1.0}}), HasSubstr("attribute count"));
    EXPECT_THAT(refusal({{"count", std::uint64_t{UINT64_MAX}}}), HasSubstr("18446744073709551615"));
    EXPECT_THAT(refusal({{"count", std::monostate()}}), HasSubstr("attribute count"));
    EXPECT_THAT(refusal({{"mode", std::string("odd")}}), HasSubstr("\"odd\" is none of plain, fancy"));
    EXPECT_THAT(refusal({{"type", std::string("float")}}), HasSubstr("attribute type"));
}

TEST(Attr, RefusesUnknownAndRepeatedNames) {
    EXPECT_THAT(refusal({{"colour", true}}),
                HasSubstr("unknown attribute 'colour'; this op takes: flag, count"));
    EXPECT_THAT(refusal({{"flag", true}, {"flag", false}}), HasSubstr("twice"));
}

TEST(Attr, DistinguishesAnAbsentOptionalFromItsDefault) {
    EXPECT_EQ(Attrs{}.limit, 6.0);
    EXPECT_FALSE(with("limit", std::monostate()).limit.has_value());
    EXPECT_EQ(with("limit", 0.5).limit, 0.5);
}

TEST(Attr, ValuesMakeTheSameAttributesAgain) {
    Attrs attrs;
    attrs.count = -1;
    attrs.mode = Mode::fancy;
    attrs.limit.reset();
    attrs.shape = {Dim::symbolic("n"), 4};
    const OpDef& op = sample_op("everything");
    const auto values = op.attr_values(&attrs);
    NamedAttrs named;
    for (std::size_t i = 0; i < values.size(); ++i) named.emplace_back(op.fields[i].name, values[i]);
    EXPECT_EQ(op.attr_values(op.make_attrs(named).value().get()), values);
}

TEST(Attr, FieldsTellKindDefaultAndChoices) {
    const auto fields = fields_of<Attrs>();
    ASSERT_EQ(fields.size(), 11U);
    EXPECT_EQ(fields[0].kind, AttrKind::boolean);
    EXPECT_EQ(fields[1].default_value, AttrValue(std::int64_t{3}));
    EXPECT_EQ(fields[5].kind, AttrKind::text);
    EXPECT_EQ(fields[5].choices.size(), 2U);
    EXPECT_EQ(fields[5].default_value, AttrValue(std::string("plain")));
    EXPECT_EQ(fields[10].kind, AttrKind::real) << "an optional has its value's kind";
}

}  // namespace
}  // namespace headrace::testing
