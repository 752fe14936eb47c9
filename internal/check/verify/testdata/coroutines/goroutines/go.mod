module coroutines

go 1.24
