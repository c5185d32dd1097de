#include "lake/fields.h"

#include "base/text.h"

namespace mssql_cdc::lake {

const columns::Field* FindField(const std::vector<columns::Field>& fields,
                                std::string_view name) {
  for (const columns::Field& field : fields) {
    if (EqualsIgnoringAsciiCase(field.name, name)) return &field;
  }
  return nullptr;
}

Error TypesDiffer(const std::string& location, const columns::Field& one,
                  const columns::Field& other) {
  return Error(ErrorId::kLakeSchemaMismatch)
      .With("table", location)
      .With("column", one.name)
      .With("detail", columns::DeltaTypeName(one.type) + " and " +
                          columns::DeltaTypeName(other.type));
}

Result<std::vector<columns::Field>> FieldsOfAll(
    const std::vector<std::unique_ptr<columns::BatchReader>>& sources,
    const std::string& location) {
  std::vector<columns::Field> all;
  for (const auto& source : sources) {
    for (const columns::Field& field : source->schema()->fields) {
      const columns::Field* known = FindField(all, field.name);
      if (known == nullptr) {
        all.push_back(field);
      } else if (known->type != field.type) {
        return TypesDiffer(location, *known, field);
      }
    }
  }
  return all;
}

}  // namespace mssql_cdc::lake
