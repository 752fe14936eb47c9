// Package debug runs debug and dap as users and editors do.
package debug
