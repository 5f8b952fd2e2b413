// SPDX-License-Identifier: Apache-2.0
// The status of one mount as JSON (interface.md, `status`), made by the daemon that serves it.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "cli/daemon.hpp"
#include "cli/sources.hpp"
#include "publish/syncer.hpp"
#include "rebuild/rebuilder.hpp"
#include "store/chunk_store.hpp"

namespace hfd::cli {

/// Where the numbers come from. All must outlive the document's making.
struct StatusParts {
  const DaemonOptions& options;
  Sources& sources;
  publish::Syncer& syncer;
  rebuild::Rebuilder& rebuilder;
  store::ChunkStore& cache;
  std::uint64_t fuse_reads = 0;
  std::vector<publish::RecordedError> read_errors = {};
  base::UnixNanoseconds started = 0;
  bool read_only = false;
  std::string control;  ///< path of the control socket
};

/// `{"mounts":[{…}]}`. Does not touch the network.
base::Json status_document(const StatusParts& parts);

}  // namespace hfd::cli
