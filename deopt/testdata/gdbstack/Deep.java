import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** Threads in interpreted and in compiled methods, that sleep, wait, park and compute. */
public class Deep {
	static final CountDownLatch COLD = new CountDownLatch(1), HOT = new CountDownLatch(4);
	static final Object MONITOR = new Object();
	static volatile long sink;

	interface End {
		void run() throws Exception;
	}

	static long down(int n, long a, long b, End end) throws Exception {
		if (n == 0) {
			end.run();
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

	static void start(String name, int depth, CountDownLatch begun, End end) {
		Thread t = new Thread(() -> {
			try {
				down(depth, 1, 2, () -> {
					begun.countDown();
					end.run();
				});
			} catch (Exception e) {
				e.printStackTrace();
			}
		}, name);
		t.setDaemon(true);
		t.start();
	}

	public static void main(String[] args) throws Exception {
		End sleep = () -> Thread.sleep(86400000), park = LockSupport::park, spin = () -> sink = spin(3);
		End wait = () -> {
			synchronized (MONITOR) {
				MONITOR.wait();
			}
		};
		// Nothing is compiled yet, and what is interpreted stays so until it returns.
		start("cold", 7, COLD, sleep);
		COLD.await();
		// Different ends, so that the compiler takes none of them for the only one there is.
		End[] ends = {() -> sink++, () -> sink--, () -> sink += 2};
		for (int i = 0; i < 200000; i++) sink += down(i % 12, i, 3, ends[i % ends.length]);
		start("sleep", 9, HOT, sleep);
		start("wait", 10, HOT, wait);
		start("park", 11, HOT, park);
		start("spin", 5, HOT, spin);
		HOT.await();
		System.out.println("ready");
		Thread.sleep(86400000);
	}
}
