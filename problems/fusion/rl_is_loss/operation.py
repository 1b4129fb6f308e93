"""Importance-sampling policy loss, statistics over the tokens of all ranks, and own gradients."""
import torch
import torch.distributed as dist


def operation(
    logp: torch.Tensor,
    old_logp: torch.Tensor,
    advantage: torch.Tensor,
    mask: torch.Tensor,
    stats: torch.Tensor,
    grad: torch.Tensor,
) -> None:
    """logp, old_logp, advantage, mask, grad: [n], stats: [7]."""
    d = logp - old_logp
    r = torch.exp(d)
    terms = (torch.ones_like(r), -r * advantage, r, r * r, d, r - 1 - d, advantage)
    sums = torch.stack([(mask * term).sum() for term in terms])
    dist.all_reduce(sums, op=dist.ReduceOp.SUM)
    tokens = sums[0].clamp(min=1)  # without tokens all numerators are zero
    stats.copy_(sums / tokens)
    stats[0] = sums[0]
    grad.copy_(-mask * r * advantage / tokens)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (1024, 8192):
        logp, old_logp, advantage = 2 * torch.rand(3, n, device="cuda") - 1
        mask = torch.randint(0, 2, (n,), dtype=torch.int32, device="cuda")
        stats, grad = torch.empty(7, device="cuda"), torch.empty(n, device="cuda")
        operation(logp, old_logp, advantage, mask, stats, grad)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
