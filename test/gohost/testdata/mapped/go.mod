module mapped

go 1.24
