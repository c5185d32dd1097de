#include "cdc/capture_instance.h"

#include <gtest/gtest.h>

#include "columns/batch.h"

namespace mssql_cdc::cdc {
namespace {

CaptureInstance Instance(std::string table, std::string name, std::int64_t created_us) {
  return {"dbo", std::move(table), std::move(name), std::nullopt, created_us, {}};
}

std::vector<std::string> NamesOf(const InstanceFamily& family) {
  std::vector<std::string> names;
  for (const CaptureInstance& instance : family.instances) {
    names.push_back(instance.name);
  }
  return names;
}

TEST(ResolveFamily, Table) {
  const std::vector<CaptureInstance> kInstances = {
      Instance("orders", "dbo_orders_v2", 2),
      Instance("orders", "dbo_orders", 1),
      Instance("lines", "dbo_lines", 3),
      Instance("Mixed", "dbo_Mixed", 4),
      Instance("mixed2", "DBO_MIXED", 5),
      Instance("stock", "stock_new", 7),
      Instance("stock", "stock_newer", 6),
      Instance("Café", "dbo_Café", 8),
      Instance("x y", "X1", 9),
  };
  using Names = std::vector<std::string>;
  const struct {
    const char* name;
    Names known;
    Names family;  // Empty: not found.
    bool is_gone;
    const char* fact;
    const char* value;
  } kRows[] = {
      {"dbo_orders", {}, {"dbo_orders", "dbo_orders_v2"}, false, "", ""},
      {"dbo_orders_v2", {}, {"dbo_orders", "dbo_orders_v2"}, false, "", ""},
      {"DBO_Lines", {}, {"dbo_lines"}, false, "", ""},
      {"dbo_CAFÉ", {}, {"dbo_Café"}, false, "", ""},
      {"x1", {}, {"X1"}, false, "", ""},
      {"dbo_Mixed", {}, {"dbo_Mixed"}, false, "", ""},
      {"dbo_mixed", {}, {}, false, "candidates", "dbo_Mixed, DBO_MIXED"},
      {"dbo_stock", {}, {"stock_newer", "stock_new"}, true, "", ""},
      {"dbo_order", {}, {}, false, "nearest", "dbo_orders, dbo_orders_v2"},
      {"dbo_lins", {}, {}, false, "nearest", "dbo_lines"},
      {"hr_people_archive", {}, {}, false, "visible_count", "9"},
      {"old", {"gone too", "stock_new"}, {"stock_newer", "stock_new"}, true, "", ""},
      {"dbo_lines", {"stock_new"}, {"dbo_lines"}, false, "", ""},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.name);
    const Result<InstanceFamily> found = ResolveFamily(kInstances, row.name, row.known);
    ASSERT_EQ(found.ok(), !row.family.empty());
    if (found.ok()) {
      EXPECT_EQ(NamesOf(found.value()), row.family);
      EXPECT_EQ(found.value().name_is_gone, row.is_gone);
    } else {
      EXPECT_EQ(found.error().id(), ErrorId::kCaptureInstanceNotFound);
      EXPECT_EQ(found.error().Fact(row.fact), row.value);
    }
  }
}

constexpr Lsn L(std::uint8_t last) { return Lsn{{0, 0, 0, 1, 0, 0, 0, 2, 0, last}}; }

// Cleanup moves both instances of a table to one LSN: which is newer, creation tells.
TEST(ResolveFamily, OneFirstLsnIsOrderedByCreation) {
  std::vector<CaptureInstance> instances = {Instance("t", "v2", 2),
                                            Instance("t", "v1", 1)};
  for (CaptureInstance& instance : instances) instance.start_lsn = L(5);
  EXPECT_EQ(NamesOf(ResolveFamily(instances, "v1").value()),
            (std::vector<std::string>{"v1", "v2"}));
  // Made in one tick of the clock; one is not reached by capture yet.
  instances[0].created_us = 1;
  instances[0].start_lsn.reset();
  EXPECT_EQ(NamesOf(ResolveFamily(instances, "v1").value()),
            (std::vector<std::string>{"v1", "v2"}));
}

// Every window over every pair of first LSNs: each LSN of it is in exactly one piece,
// and that piece is the newer instance's from its first LSN on.
TEST(InstanceFamily, TheExactNameIsMeantBeforeOneInAnotherCase) {
  const InstanceFamily family{{Instance("t", "Orders", 1), Instance("t", "orders", 2),
                               Instance("t", "newest", 3)},
                              false};
  EXPECT_EQ(family.Meant("orders").name, "orders");
  EXPECT_EQ(family.Meant("Orders").name, "Orders");
  EXPECT_EQ(family.Meant("ORDERS").name, "Orders");
  EXPECT_EQ(family.Meant("gone").name, "newest");
}

TEST(CutAtInstances, EachCommitIsReadOnceAndFromTheNewestThatHoldsIt) {
  int two_piece_count = 0;
  for (std::uint8_t v1 = 0; v1 < 8; ++v1) {
    for (std::uint8_t v2 = 0; v2 < 8; ++v2) {
      std::vector<CaptureInstance> instances = {Instance("t", "v1", 1),
                                                Instance("t", "v2", 2)};
      if (v1 != 0) instances[0].start_lsn = L(v1);
      if (v2 != 0) instances[1].start_lsn = L(v2);
      for (std::uint8_t after = 0; after < 8; ++after) {
        for (auto through = static_cast<std::uint8_t>(after + 1); through < 9;
             ++through) {
          const auto pieces = CutAtInstances(instances, {L(after), L(through)});
          two_piece_count += pieces.size() == 2;
          Lsn reached = L(after);
          for (const ReadPiece& piece : pieces) {
            EXPECT_EQ(piece.window.after, reached);
            EXPECT_LT(piece.window.after, piece.window.through);
            reached = piece.window.through;
            const bool is_from_newer = v2 != 0 && L(v2) <= *piece.window.after.Next();
            EXPECT_EQ(piece.instance_index, is_from_newer ? 1u : 0u);
            if (!is_from_newer && v2 != 0) {
              EXPECT_LT(piece.window.through, L(v2));
            }
          }
          EXPECT_EQ(reached, L(through));
        }
      }
    }
  }
  EXPECT_GT(two_piece_count, 100);
}

TEST(ParseColumnList, BracketsAndWhatIsInThem) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(ParseColumnList("[order_id]"), Names{"order_id"});
  EXPECT_EQ(ParseColumnList("[a], [b c], [d]]e]"), (Names{"a", "b c", "d]e"}));
  EXPECT_EQ(ParseColumnList(""), Names{});
  EXPECT_EQ(ParseColumnList("[unfinished"), Names{"unfinished"});
}

TEST(CheckInstanceName, TakesWhatSqlServerTakes) {
  EXPECT_TRUE(CheckInstanceName("dbo_Café").ok());
  EXPECT_TRUE(CheckInstanceName(std::string(100, 'x')).ok());
  for (const std::string& name : {std::string(), std::string("a]b"),
                                  std::string("a\nb"), std::string(101, 'x')}) {
    const Status status = CheckInstanceName(name);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().id(), ErrorId::kOptionInvalid);
  }
}

TEST(ReadCapturedColumns, ComeInCaptureOrder) {
  using columns::ColumnBuilder;
  using columns::Kind;
  const std::vector<std::pair<const char*, Kind>> kFields = {
      {"column_name", Kind::kUtf8},        {"column_id", Kind::kInt32},
      {"column_ordinal", Kind::kInt32},    {"data_type", Kind::kUtf8},
      {"numeric_precision", Kind::kInt16}, {"numeric_scale", Kind::kInt32}};
  auto schema = std::make_shared<columns::Schema>();
  std::vector<ColumnBuilder> builders;
  for (const auto& [name, kind] : kFields) {
    schema->fields.push_back({name, {kind}, true, ""});
    builders.emplace_back(columns::Type{kind}, 2);
  }
  const auto add = [&](const char* name, std::int32_t id, std::int32_t ordinal) {
    builders[0].AppendBytes(name);
    builders[1].AppendInt32(id);
    builders[2].AppendInt32(ordinal);
    builders[3].AppendBytes("decimal");
    builders[4].AppendInt16(18);
    builders[5].AppendNull();
  };
  add("b", 7, 2);
  add("a", 9, 1);
  columns::RecordBatch batch{schema, 2, {}};
  for (ColumnBuilder& builder : builders) {
    batch.columns.push_back(std::make_shared<columns::Column>(builder.Finish()));
  }
  const Result<std::vector<CapturedColumn>> read = ReadCapturedColumns(batch);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().size(), 2u);
  EXPECT_EQ(read.value()[0].name, "a");
  EXPECT_EQ(read.value()[0].column_id, 9);
  EXPECT_EQ(read.value()[0].precision, 18);
  EXPECT_EQ(read.value()[0].scale, std::nullopt);
  // An answer to another question is noticed, not misread.
  EXPECT_EQ(ReadInstances(batch).error().id(), ErrorId::kTdsMalformed);
}

}  // namespace
}  // namespace mssql_cdc::cdc
