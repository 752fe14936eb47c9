module preempted

go 1.24
