module grows

go 1.24
