package protocheck

// Members exports members for tests.
var Members = members
