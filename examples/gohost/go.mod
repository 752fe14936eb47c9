module gohost

go 1.24
