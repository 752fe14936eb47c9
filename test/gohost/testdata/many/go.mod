module many

go 1.24
