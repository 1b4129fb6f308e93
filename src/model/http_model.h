// A model behind HTTP: one of the four wire protocols (model/protocol.h) with everything that keeps
// a paid request whole: retries, rates, limits of time and money, the record of attempts.
#pragma once

#include <memory>
#include <string>

#include "model/entry.h"
#include "model/model.h"

namespace allranks::model {

// `key` is sent as the protocol asks for it; empty: none is sent. It appears in nothing this model
// says or writes, even if the server repeats it. The entry's protocol is one of the HTTP ones.
// `listener` may be null and outlives the model.
std::unique_ptr<Model> MakeHttpModel(const Entry& entry, std::string key, Budget budget,
                                     Listener* listener);

}  // namespace allranks::model
