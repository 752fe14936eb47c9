// Package delve tests the verbs on processes that Delve's headless server holds.
package delve
