package protocheck

// Members are the names of members that are looked for.
var Members = members
