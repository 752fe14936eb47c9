// The encoding `simple` of frames in the operands of a deopt bundle: a stream of items, each with a constant in front, what << 32 | how << 24 | index.
// doc/user/layouts.md describes it. bundle.cpp writes it, and deopt.cpp reads it.
#pragma once

namespace tinyvm {

enum What { FRAME = 1, LOCAL = 2, STACK = 3, MONITOR = 4, OBJECT = 5, FIELD = 6, EXTRA = 7 };
enum How { TYPED = 0, AS_BOXED = 1, AS_REF = 2, AS_VIRTUAL = 3, AS_DEAD = 4 }; // of values
enum Mode { REEXECUTE = 0, AFTER = 1, IN_CALL = 2 };                            // how a frame resumes

} // namespace tinyvm
