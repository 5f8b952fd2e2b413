// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs diff`: two versions compared file by file and tensor by tensor. Blocking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/session.hpp"

namespace hfd::api {

enum class TensorStatus { same, changed, added, removed, renamed, retyped };
const char* tensor_status_name(TensorStatus status);

struct TensorDifference {
  std::string path;  ///< of its file in B, or in A for a removed one
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t elements = 0;
  std::uint64_t changed_elements = 0;  ///< all of them for added, removed and retyped ones
  std::uint64_t bytes = 0;
  TensorStatus status = TensorStatus::same;
  std::string from;       ///< renamed: its name in A
  std::string from_path;  ///< its file in A when that is another one
};

struct VersionDifference {
  VersionId a;
  VersionId b;
  std::vector<std::string> files_added;
  std::vector<std::string> files_removed;
  std::vector<std::string> files_changed;  ///< content, kind, target or executable bit
  std::vector<TensorDifference> tensors;   ///< by file in B and place in it, then the removed ones
};

/// A tensor of B is compared with that of its name in the same file of A, else with the only one of
/// its name in any file of A. What is left over is matched by content: renamed. A grown or cut
/// tensor is `changed`; the elements beyond the common length count as changed. Files of equal
/// content are not read past their header.
Result<VersionDifference> diff_versions(Session& session, const lineage::VersionPtr& a,
                                        const lineage::VersionPtr& b);

}  // namespace hfd::api
