"""Backward pass of a two-layer network, gradients summed over ranks, one step of Adam everywhere."""
import torch
import torch.distributed as dist


def operation(dy, h, slope, x, w2, param, m, v, new_param, new_m, new_v) -> None:
    """dy, h, slope, x, w2: halves, by feature and sample; all others: [units, 64 + inputs] floats."""
    second = h.float() @ dy.float().t()
    bucket = dist.all_reduce(second, async_op=True)
    z = slope.float() * (w2.float() @ dy.float())
    first = z @ x.float().t()
    dist.all_reduce(first)
    bucket.wait()
    grad = torch.cat([second, first], dim=1)
    torch.add(0.875 * m, grad, alpha=0.125, out=new_m)
    torch.add(0.984375 * v.abs(), grad.square(), alpha=0.015625, out=new_v)
    q = new_m / (new_v.sqrt() + 2**-10)
    torch.sub(param, 0.125 * (q + 0.03125 * param), out=new_param)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for cols in (1, 2):
        dy, h, slope, w2 = torch.randint(-1, 2, (4, 64, 64), device="cuda").half()
        x = torch.randint(-1, 2, (cols * 32, 64), device="cuda").half()
        state = torch.randint(0, 9, (3, 64, 64 + cols * 32), device="cuda").float()
        operation(dy, h, slope, x, w2, *state, *torch.empty_like(state))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
