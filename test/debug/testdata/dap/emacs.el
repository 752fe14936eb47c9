;; Drives `reframe dap' with dap-mode, without a person. The configuration is in the environment.
(setq user-emacs-directory (file-name-as-directory (getenv "DAP_HOME"))
      dap-breakpoints-file (expand-file-name "breakpoints" user-emacs-directory)
      lsp-session-file (expand-file-name "session" user-emacs-directory)
      make-backup-files nil)
(package-initialize)
(require (quote dap-mode))
(require (quote dap-ui))

(defvar patience (string-to-number (getenv "DAP_PATIENCE")))

(defun until (what true)
  "Handle what comes until TRUE says so; WHAT is named where it never does."
  (let ((end (+ (float-time) patience)))
    (while (not (funcall true))
      (when (> (float-time) end)
        (error "%s never came" what))
      (accept-process-output nil 0.05))))

(defun want (is be)
  "Want IS to be BE."
  (unless (equal is be)
    (error "%S, not %S" is be)))

(dap-register-debug-provider
 "reframe" (lambda (conf) (plist-put conf :dap-server-path (list (getenv "DAP_BINARY") "dap"))))

;; A breakpoint on the line of the site, set as a person sets it.
(find-file (getenv "DAP_IR"))
(goto-char (point-min))
(search-forward "call void (i64, i32")
(dap-breakpoint-add)
(defvar site (line-number-at-pos))

(dap-debug (list :type "reframe" :request "launch" :name "exits" :program (getenv "DAP_PROGRAM")
                 :args (vconcat (split-string (getenv "DAP_ARGS"))) :ir (getenv "DAP_IR")))
(defvar session (dap--cur-session))

(defun stands ()
  "The innermost frame, where all stands."
  (and (dap--debug-session-thread-id session) (dap--debug-session-active-frame session)))

(defun value (name)
  "What the session has for NAME."
  (gethash "result" (dap-request session "evaluate" :expression name
                                 :frameId (gethash "id" (stands)) :context "watch")))

(dolist (n '("0" "1" "2" "3"))
  (until "the breakpoint" #'stands)
  (want (gethash "line" (stands)) site)
  (want (value "%n") n)
  (when (equal n "1")
    (dap-next session)
    (until "a step" #'stands)
    (want (gethash "name" (stands)) "@load (interpreter)")
    (want (gethash "line" (stands)) (1+ site)))
  (dap-continue session (dap--debug-session-thread-id session)))
(until "the end" (lambda () (not (dap--session-running session))))
(princ "ok\n")
