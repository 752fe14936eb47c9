module host

go 1.24
