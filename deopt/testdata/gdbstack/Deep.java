import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** Threads in interpreted and in compiled methods, that sleep, wait, park and compute. */
public class Deep {
	static final CountDownLatch BEGUN = new CountDownLatch(4);
	static volatile long sink;

	interface End {
		void run() throws Exception;
	}

	static long down(int n, long a, long b, End end) throws Exception {
		if (n == 0) {
			if (end != null) {
				BEGUN.countDown();
				end.run();
			}
			return a;
		}
		return down(n - 1, a + b, b ^ n, end) + a * b;
	}

	static long spin(long x) {
		for (;;) {
			x = x * 6364136223846793005L + 1442695040888963407L;
			if (x == 0) return sink;
		}
	}

	static void start(String name, int depth, End end) {
		Thread t = new Thread(() -> {
			try {
				down(depth, 1, 2, end);
			} catch (Exception e) {
				e.printStackTrace();
			}
		}, name);
		t.setDaemon(true);
		t.start();
	}

	public static void main(String[] args) throws Exception {
		Object monitor = new Object();
		start("cold", 7, () -> Thread.sleep(86400000)); // interpreted: it has not run often yet
		for (int i = 0; i < 200000; i++) sink += down(i % 12, i, 3, null);
		start("sleep", 9, () -> Thread.sleep(86400000));
		start("wait", 10, () -> { synchronized (monitor) { monitor.wait(); } });
		start("park", 11, LockSupport::park);
		BEGUN.await();
		Thread.sleep(100);
		System.out.println("ready");
		start("spin", 5, () -> sink = spin(3));
		Thread.sleep(86400000);
	}
}
