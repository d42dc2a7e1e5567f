(address) => new Promise(done => {
    const socket = new WebSocket(address);
    socket.onmessage = () => done("read");
    socket.onerror = () => done("refused");
    setTimeout(() => done("silent"), 5000);
})
