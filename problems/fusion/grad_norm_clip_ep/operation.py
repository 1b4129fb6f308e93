"""Clipping by one norm over dense, expert and replicated gradients."""
import torch
import torch.distributed as dist


def operation(dense, expert, replicated, ep, max_norm, new_dense, new_expert, new_replicated, norms):
    expert = expert / ep
    sums = torch.stack([dense.square().sum(), expert.square().sum(), replicated.square().sum()])
    if dist.get_rank() >= ep:
        sums[2] = 0  # a copy, which does not count
    dist.all_reduce(sums, op=dist.ReduceOp.SUM)
    torch.sqrt(torch.cat([sums, sums.sum().reshape(1)]), out=norms)
    norm = norms[3]
    scale = torch.where(norm > 0, max_norm / norm, torch.ones_like(norm)).clamp(max=1.0)
    for grad, clipped in ((dense, new_dense), (expert, new_expert), (replicated, new_replicated)):
        torch.mul(grad, scale, out=clipped)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for sizes in ((2048, 2048, 256), (8192, 12288, 1024)):
        grads = [torch.randint(-2, 3, (size,), device="cuda").float() for size in sizes]
        clipped = [torch.empty_like(grad) for grad in grads]
        operation(*grads, 4, 10, *clipped, torch.empty(4, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
