"""Programs that several scenes run: trainings in plain torch that speak as verl's console logger does."""

TRAINER = '''
"""A small GRPO-shaped training on gloo; says what verl says while it trains."""
import argparse, os, random, sys, time, logging
import torch, torch.distributed as dist
from tqdm import tqdm

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--save", default="")
parser.add_argument("--pause", type=float, default=0.2)
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--break-at", type=int, default=0)
parser.add_argument("--how", default="")
given = parser.parse_args()
logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s [%(name)s] %(message)s")
log = logging.getLogger("trainer")
rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
if world > 1:
    from datetime import timedelta
    log.info("Initializing process group: rank %d of %d", rank, world)
    dist.init_process_group("gloo", timeout=timedelta(seconds=float(os.environ.get("PG_TIMEOUT", 1800))))
torch.manual_seed(rank)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=given.lr)
if rank == 0:
    log.info("Qwen2ForCausalLM contains 0.49B parameters")
    print("Using dataset class: RLHFDataset", flush=True)
    print("dataset len: 7473", flush=True)
    print(f"Total training steps: {given.steps}", flush=True)
    print("Training from scratch", flush=True)
bar = tqdm(total=given.steps, desc="Training Progress", disable=rank != 0)
from breaking import at_step
for step in range(1, given.steps + 1):
    started = time.time()
    x = torch.randn(32, 64)
    loss = torch.nn.functional.cross_entropy(model(x), torch.randint(0, 8, (32,)))
    loss = at_step(step, rank, model, loss)
    optimizer.zero_grad(); loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if world > 1:
        for p in model.parameters():
            dist.all_reduce(p.grad)
    optimizer.step()
    time.sleep(given.pause)
    if rank == 0:
        took = time.time() - started
        print(f"step:{step} - global_seqlen/mean:{random.uniform(500, 600):.3f} - actor/entropy:{random.uniform(5.5, 6.4):.4f} - actor/pg_loss:{loss.item():.5f} - actor/grad_norm:{norm.item():.5f} - actor/lr:{given.lr} - critic/score/mean:{random.uniform(0, 0.4):.4f} - critic/rewards/mean:{random.uniform(0, 0.4):.4f} - response_length/mean:{random.uniform(80, 200):.2f} - timing_s/gen:{took * 0.6:.3f} - timing_s/update_actor:{took * 0.3:.3f} - timing_s/step:{took:.3f} - perf/throughput:{random.uniform(900, 1100):.1f}", flush=True)
        bar.update()
    if given.save:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, f"{given.save}/global_step_{step}.pt")
bar.close()
if rank == 0:
    log.info("Training finished")
if world > 1:
    dist.destroy_process_group()
'''
"""Needs a module `breaking` with `at_step(step, rank, model, loss) -> loss`, which is where a scene breaks it."""

NOTHING_BREAKS = "def at_step(step, rank, model, loss):\n    return loss\n"


def trainer(breaking: str = "    return loss") -> dict[str, str]:
    """Files of a training that `breaking`, the body of `at_step`, breaks."""
    head = "import os, signal, sys, time\nimport torch, torch.distributed as dist\n\n"
    return {"train.py": TRAINER.lstrip(), "breaking.py": f"{head}def at_step(step, rank, model, loss):\n{breaking}\n"}
