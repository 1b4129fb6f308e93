"""Gradients are summed everywhere, one step of Adam on each shard, all new parameters on all ranks."""
import torch
import torch.distributed as dist


def operation(grad, param, m, v, grad_sum, params, new_m, new_v) -> None:
    """grad, params, grad_sum: [world, n]; all others: [n]."""
    grad_sum.copy_(grad)
    dist.all_reduce(grad_sum, op=dist.ReduceOp.SUM)
    mine = grad_sum[dist.get_rank()]
    torch.add(0.875 * m, mine, alpha=0.125, out=new_m)
    torch.add(0.984375 * v.abs(), mine.square(), alpha=0.015625, out=new_v)
    q = new_m / (new_v.sqrt() + 2**-10)
    dist.all_gather_into_tensor(params.view(-1), param - 0.125 * (q + 0.03125 * param))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (512, 4096):
        grad = torch.randint(-4, 5, (dist.get_world_size(), n), device="cuda").float()
        param, m, v = (torch.randint(0, 9, (n,), device="cuda").float() for _ in range(3))
        operation(grad, param, m, v, torch.empty_like(grad), torch.empty_like(grad), torch.empty_like(m),
                  torch.empty_like(v))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
