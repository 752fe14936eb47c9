// An event loop with nothing to do.
setInterval(() => {}, 86400000);
console.log("ready");
