// A static variable with the name of an internal one in another object, compiled from LLVM IR.
static volatile long counter = 11;
long bump(void) { return counter++; }
