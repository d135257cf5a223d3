#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "load.h"

// Held is an RPC that the node or its client ends.
class Held {
 public:
  virtual ~Held() = default;
  // End finishes the RPC; only the first call has an effect.
  virtual void End(grpc::Status status) = 0;
};

// Node knows the RPCs that are being handled.
class Node {
 public:
  explicit Node(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  Load& load() { return load_; }

  void Enter() { load_.Begin(); }

  void Hold(std::shared_ptr<Held> rpc) {
    std::lock_guard<std::mutex> lock(mu_);
    held_.insert(std::move(rpc));
  }

  void Leave(const std::shared_ptr<Held>& rpc) {
    load_.End();
    std::lock_guard<std::mutex> lock(mu_);
    held_.erase(rpc);
  }

  long Live() const { return load_.InFlight(); }

  // EndHeld ends the RPCs that are held now. It is not under the lock that it
  // calls them, since they may leave meanwhile.
  void EndHeld(const grpc::Status& status) {
    std::vector<std::shared_ptr<Held>> rpcs;
    {
      std::lock_guard<std::mutex> lock(mu_);
      rpcs.assign(held_.begin(), held_.end());
    }
    for (const auto& rpc : rpcs) rpc->End(status);
  }

 private:
  const std::string name_;
  Load load_;
  std::mutex mu_;
  std::set<std::shared_ptr<Held>> held_;
};
