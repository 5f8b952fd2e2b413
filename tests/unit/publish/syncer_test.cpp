// SPDX-License-Identifier: Apache-2.0
#include "publish/syncer.hpp"

#include <atomic>

#include <doctest/doctest.h>

#include "publish/publisher_fixture.hpp"
#include "publish/work_tree_fixture.hpp"

namespace hfd::publish {
namespace {

using test::matrix;
using test::PublisherFixture;
using test::safetensors;

constexpr std::chrono::milliseconds never{3'600'000};
constexpr std::chrono::seconds patience{60};

base::Deadline soon() { return base::deadline_in(patience); }

/// Waits for a fact that other threads bring about and tell of.
class Signal {
 public:
  void tell() {
    {
      const base::Lock lock(mutex_);
      ++count_;
    }
    told_.notify_all();
  }
  /// False when `holds` is still false after the patience of a test.
  bool wait_for(const std::function<bool()>& holds) {
    const base::Deadline deadline = soon();
    while (!holds()) {
      const base::Lock lock(mutex_);
      const int seen = count_;
      // The watch may have told before we looked: look again soon whatever happens.
      const auto again = base::deadline_in(std::chrono::milliseconds(50));
      while (count_ == seen && told_.wait_until(mutex_, again)) {
      }
      if (base::SteadyClock::now() > deadline) {
        return false;
      }
    }
    return true;
  }

 private:
  base::Mutex mutex_;
  base::Condition told_;
  int count_ HFD_GUARDED_BY(mutex_) = 0;
};

/// One mount of a bucket without its file system.
struct Mounted {
  PublisherFixture& publisher;
  test::Staging staging;
  std::atomic<NodeId> writer{0};  ///< a node that somebody has open for writing
  Signal switched;
  std::unique_ptr<Syncer> syncer;

  Mounted(PublisherFixture& fixture, const std::string& name)
      : publisher(fixture), staging(fixture.folder / name) {}
  void start(SyncOptions options) {
    lineage::VersionPtr version;
    const auto head = publisher.session->bucket().head("main");
    REQUIRE(head.ok());
    if (*head) {
      version = *publisher.session->bucket().version((*head)->version);
      REQUIRE(staging->switch_to(nullptr, *version).ok());
    }
    syncer = std::make_unique<Syncer>(*staging, &publisher.session->bucket(), publisher.session->opener(),
                                      publisher.session->pool(), std::move(options), version, nullptr);
    syncer->start({[this](NodeId id) { return id == writer.load(); },
                   [this](const std::vector<ChangedName>&) { switched.tell(); }});
  }
  void start_by_hand() { start({.quiet = never, .poll = never}); }
  Result<PublishOutcome> commit(bool partial = false) {
    return syncer->commit({.message = "by test", .partial = partial}, soon());
  }
  lineage::VersionPtr committed(bool partial = false) {
    auto outcome = commit(partial);
    INFO((outcome.ok() ? std::string() : outcome.error().message + " / " + outcome.error().object));
    REQUIRE(outcome.ok());
    return outcome->version;
  }
};

std::string paths_of(const lineage::VersionPtr& version) {
  std::string paths;
  for (const lineage::FileEntry& entry : version->manifest.files) {
    paths += entry.path + " ";
  }
  return paths;
}

std::string whole_model() { return safetensors({matrix("w", 4, 1)}); }
std::string cut_model() { return whole_model().substr(0, 500); }

TEST_SUITE("publish/syncer") {
  TEST_CASE("the quiet time publishes one version of all that was written") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    const test::Tree tree{{"a.safetensors", whole_model()}, {"config.json", "{}"}, {"notes.txt", "n"}};
    for (const auto& [path, text] : tree) {
      mount.staging.create(path, text);
    }
    mount.start({.quiet = std::chrono::milliseconds(5), .poll = never});
    Signal moved;
    const auto watch =
        publisher.session->remote().watch("hfdelta/refs/main", [&] { moved.tell(); });
    REQUIRE(moved.wait_for([&] { return mount.syncer->current() != nullptr; }));
    const lineage::VersionPtr version = mount.committed();  // nothing is left to publish
    CHECK(version->manifest.sequence == 1);
    CHECK(version->manifest.message.empty());
    CHECK(publisher.session->bucket().head("main")->value().version == version->id);
    publisher.check_version(version, tree);
    CHECK(mount.staging->staged_files()->empty());
    CHECK(mount.staging->version() == version->id);
  }

  TEST_CASE("before the quiet time is over a commit publishes at once, with its message") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    mount.start_by_hand();
    mount.staging.create("a", "1");
    mount.staging.create("b", "2");
    const lineage::VersionPtr version = mount.committed();
    CHECK(version->manifest.message == "by test");
    publisher.check_version(version, {{"a", "1"}, {"b", "2"}});
    CHECK(mount.syncer->current() == version);
    CHECK(mount.syncer->status().last_version == version->id);
  }

  TEST_CASE("a commit of nothing gives the version that is there, or none") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    mount.start_by_hand();
    CHECK(mount.committed() == nullptr);
    mount.staging.create("a", "1");
    const lineage::VersionPtr first = mount.committed();
    CHECK(mount.committed() == first);
    CHECK(publisher.session->bucket().head("main")->value().sequence == 1);
  }

  TEST_CASE("the same bytes written again are no new version's content, other bytes are") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    mount.start_by_hand();
    mount.staging.create("a", "1");
    mount.committed();
    mount.staging.rewrite("a", "2");
    const lineage::VersionPtr second = mount.committed();
    CHECK(second->manifest.sequence == 2);
    publisher.check_version(second, {{"a", "2"}});
    REQUIRE(mount.staging.unlink("a").ok());
    CHECK(mount.committed()->manifest.files.empty());
  }

  TEST_CASE("a commit with an incomplete set is refused and names it") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    mount.start_by_hand();
    mount.staging.create("m.safetensors", cut_model());
    const auto refused = mount.commit();
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::incomplete);
    CHECK(refused.error().object.find("m.safetensors") != std::string::npos);
    CHECK_FALSE(refused.error().hint.empty());
    CHECK_FALSE(publisher.session->bucket().head("main")->has_value());
    CHECK(mount.staging->staged_files()->size() == 1);
  }

  TEST_CASE("a partial commit publishes an incomplete set") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    mount.start_by_hand();
    mount.staging.create("m.safetensors", cut_model());
    publisher.check_version(mount.committed(true), {{"m.safetensors", cut_model()}});
    CHECK(mount.staging->staged_files()->empty());
  }

  TEST_CASE("the quiet time holds back the folder of an incomplete set and publishes the others") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    REQUIRE(mount.staging->make_folder(mount.staging.new_node("d", 0755)).ok());
    mount.staging.create("d/m.safetensors", cut_model());
    mount.staging.create("d/beside.json", "{}");
    mount.staging.create("ready.txt", "r");
    mount.start({.quiet = std::chrono::milliseconds(5), .poll = never});
    Signal moved;
    const auto watch =
        publisher.session->remote().watch("hfdelta/refs/main", [&] { moved.tell(); });
    REQUIRE(moved.wait_for([&] { return mount.syncer->current() != nullptr; }));
    CHECK(paths_of(mount.syncer->current()) == "ready.txt ");
    CHECK(mount.commit().error().code == ErrorCode::incomplete);
    const SyncStatus status = mount.syncer->status();
    bool named = false;
    for (const StagedState& state : status.staged) {
      named = named || (state.path == "d/m.safetensors" && state.state == "incomplete" && !state.reason.empty());
    }
    CHECK(named);
  }

  TEST_CASE("files open for writing refuse a commit; a partial one leaves their folder out") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    mount.start_by_hand();
    REQUIRE(mount.staging->make_folder(mount.staging.new_node("d", 0755)).ok());
    mount.staging.create("d/open", "half");
    mount.staging.create("done", "whole");
    mount.writer = mount.staging.at("d/open").id;
    const auto refused = mount.commit();
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::incomplete);
    CHECK(refused.error().object == "d/open");
    CHECK(paths_of(mount.committed(true)) == "done ");
    mount.writer = 0;
    CHECK(paths_of(mount.committed()) == "d/open done ");
  }

  TEST_CASE("a second mount follows when poked and publishes on top") {
    PublisherFixture publisher;
    Mounted first(publisher, "staging1");
    Mounted second(publisher, "staging2");
    first.start_by_hand();
    second.start_by_hand();
    first.staging.create("from1", "1");
    const lineage::VersionPtr version1 = first.committed();
    second.syncer->poke();
    REQUIRE(second.switched.wait_for([&] { return second.syncer->current() != nullptr; }));
    CHECK(second.syncer->current()->id == version1->id);
    CHECK(second.staging.at("from1").place == Place::published);
    second.staging.create("from2", "2");
    const lineage::VersionPtr version2 = second.committed();
    CHECK(version2->manifest.sequence == 2);
    CHECK(version2->manifest.parent == version1->id);
    publisher.check_version(version2, {{"from1", "1"}, {"from2", "2"}});
    first.syncer->poke();
    REQUIRE(first.switched.wait_for([&] { return first.syncer->current()->id == version2->id; }));
    CHECK(first.staging.at("from2").place == Place::published);
    CHECK(first.syncer->version_with(base::content_hash(base::as_bytes("2")))->id == version2->id);
  }

  TEST_CASE("of two mounts that publish at the same place both versions stay, one on the other") {
    PublisherFixture publisher;
    Mounted first(publisher, "staging1");
    Mounted second(publisher, "staging2");
    first.start_by_hand();
    second.start_by_hand();
    second.staging.create("from2", "2");
    first.staging.create("from1", "1");
    first.committed();
    const lineage::VersionPtr version = second.committed();  // its parent was not known to it
    CHECK(version->manifest.sequence == 2);
    publisher.check_version(version, {{"from1", "1"}, {"from2", "2"}});
    CHECK(second.staging->staged_files()->empty());
  }

  TEST_CASE("following leaves what is staged alone") {
    PublisherFixture publisher;
    publisher.publish(test::Tree{{"a", "old"}});
    Mounted mount(publisher, "staging");
    mount.start_by_hand();
    mount.staging.rewrite("a", "mine");
    publisher.publish(test::Tree{{"a", "theirs"}, {"b", "theirs"}});
    mount.syncer->poke();
    REQUIRE(mount.switched.wait_for([&] { return mount.syncer->current()->manifest.sequence == 2; }));
    CHECK(mount.staging.staged_text(mount.staging.at("a").id) == "mine");
    publisher.check_version(mount.committed(), {{"a", "mine"}, {"b", "theirs"}});
  }

  TEST_CASE("drain publishes what can be published") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    mount.start_by_hand();
    CHECK(mount.syncer->drain(soon()).ok());
    mount.staging.create("a", "1");
    CHECK(mount.syncer->drain(soon()).ok());
    CHECK(publisher.session->bucket().head("main")->has_value());
    CHECK(mount.staging->staged_files()->empty());
  }

  TEST_CASE("drain of an incomplete set says what is left in staging") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    mount.start_by_hand();
    mount.staging.create("m.safetensors", cut_model());
    const auto drained = mount.syncer->drain(soon());
    REQUIRE_FALSE(drained.ok());
    CHECK(drained.error().code == ErrorCode::left_in_staging);
    CHECK(drained.error().message.find("1 files, 500 bytes") != std::string::npos);
    CHECK(drained.error().hint.find("m.safetensors") != std::string::npos);
    CHECK(mount.staging.staged_text(mount.staging.at("m.safetensors").id) == cut_model());
  }

  TEST_CASE("a read-only mount commits nothing and drains at once") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    mount.start({.read_only = true, .quiet = std::chrono::milliseconds(0), .poll = never});
    mount.staging.create("a", "1");
    const auto refused = mount.commit();
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::read_only);
    CHECK(mount.syncer->drain(soon()).ok());
    CHECK_FALSE(publisher.session->bucket().head("main")->has_value());
  }

  TEST_CASE("temporary names are never published and never left") {
    PublisherFixture publisher;
    Mounted mount(publisher, "staging");
    mount.start_by_hand();
    mount.staging.create(".DS_Store", "junk");
    CHECK(mount.committed() == nullptr);
    CHECK(mount.syncer->drain(soon()).ok());
  }
}

}  // namespace
}  // namespace hfd::publish
