// Package files opens files that targets name, and reads them: only regular ones, below the root of another machine if that is given, and a few
// bytes here and there without a system call for each.
//
// Its main function is [OpenRegular]; [Sysroot] is another machine's root, and [Cache] caches what was read of a file.
//
// # Security
//
// The names come from targets, which are hostile: a name may lead to a device, to a pipe whose writer never comes, or by links to anywhere. None of
// those is opened. The readers of the files check their contents.
package files
